"""What a pipeline spends its time on, measured stage by stage on this machine."""
