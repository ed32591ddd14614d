"""Speed and memory of Datum beside its peers, on the same files and with the same output."""
