"""Mix two datasets by weight, stop, and resume."""

import json
import os
import tempfile
from collections import Counter
from itertools import islice

import datum


def main() -> None:
    for name, records in (("web", 20_000), ("books", 500)):
        rows = ({"text": f"{name} {i}", "source": name} for i in range(records))
        datum.write(rows, name, progress=False)
    web, books = datum.load("web"), datum.load("books")

    # The small dataset gets its share: when exhausted, it restarts in another order.
    both = datum.mix({web["train"]: 0.7, books["train"]: 0.3}, seed=1)
    print(both)
    loader = both.to_numpy(batch_size=1000, shuffle=True)
    for number, batch in enumerate(islice(loader, 3)):
        print(f"batch {number}:", dict(sorted(Counter(batch["source"]).items())))

    sources, times = Counter(), Counter()
    for batch in both.to_numpy(batch_size=1000, shuffle=True):
        sources.update(batch["source"])
        times.update(batch["text"])
    share = sources["web"] / sources.total()
    print(f"In all {sources.total():,} records, {share:.1%} of the web")
    print("Nearest to 70 %:", abs(share - 0.7) < 0.01)
    seen = {times[f"books {i}"] for i in range(500)}
    print("Each book came equally often, but for one:", max(seen) - min(seen) <= 1)

    # The position is a few numbers, for any number of datasets.
    undisturbed = [batch["text"].tolist() for batch in both.to_numpy(batch_size=1000, shuffle=True)]
    stopped = both.to_numpy(batch_size=1000, shuffle=True)
    first = [batch["text"].tolist() for batch in islice(stopped, 8)]
    state = json.dumps(stopped.state_dict())
    print("Stopped at", json.loads(state)["position"])
    again = both.to_numpy(batch_size=1000, shuffle=True)
    again.load_state_dict(json.loads(state))
    rest = [batch["text"].tolist() for batch in again]
    print("Stopped and taken up again it is the same:", first + rest == undisturbed)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
