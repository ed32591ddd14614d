"""Programs that train with Accelerate, Lightning and Trainer: one, or several processes of one.

Each writes what its rank has seen as JSON. Started by torch.distributed.run.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

import datum

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def by_accelerate(data: str, out: Path, *, resumes: bool) -> dict[str, Any]:
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader, skip_first_batches

    accelerator = Accelerator(cpu=True)
    ds = datum.load(data)
    model = torch.nn.Linear(1, 1)
    loader = ds.to_torch(batch_size=8, shuffle=True, seed=3)
    model, prepared = accelerator.prepare(model, loader)
    accelerator.register_for_checkpointing(loader)
    if resumes:
        accelerator.load_state(str(out / "accelerate"))
        return {"rest": ids(prepared), "next": ids(prepared)}
    seen = {}
    for batch in prepared:
        seen.setdefault("first", []).append(batch["id"].tolist())
        if len(seen["first"]) == 3:
            break
    accelerator.save_state(str(out / "accelerate"))

    # A DataLoader that is prepared: one process reads for all, or each leaves out what others take.
    loader = ds.to_torch(batch_size=8, shuffle=True, columns=["id"])
    batches = accelerator.prepare(DataLoader(loader, batch_size=None))
    seen["dispatched"] = [ids(batches), ids(batches)]
    seen["length"] = [len(batches)]
    seen["skipped"] = ids(skip_first_batches(batches, 2))
    workers = accelerator.prepare(DataLoader(loader, batch_size=None, num_workers=2))
    seen["by workers"] = ids(workers)
    spawned = DataLoader(loader, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    seen["by a spawned worker"] = ids(accelerator.prepare(spawned))
    singles = ds.to_torch(batch_size=None, shuffle=True, columns=["id"])
    batches = accelerator.prepare(DataLoader(singles, batch_size=8))
    seen["singles"] = [ids(batches), ids(batches)]
    seen["length"].append(len(batches))
    apart = DataLoader(singles, batch_size=8)
    count, rank = accelerator.num_processes, accelerator.process_index
    batches = prepare_data_loader(
        apart, num_processes=count, process_index=rank, dispatch_batches=False
    )
    seen["sharded singles"] = ids(batches)
    seen["length"].append(len(batches))
    accelerator.wait_for_everyone()
    return seen


def by_lightning(data: str, out: Path, *, resumes: bool) -> dict[str, Any]:
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen: list[list[list[int]]] = [[], [], []]

        def training_step(self, batch: Any, _: int) -> Any:
            self.seen[self.current_epoch].append(batch["id"].tolist())
            return self.layer(batch["x"]).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-6)

    loader = datum.load(data).to_torch(batch_size=8, shuffle=True, seed=3)
    model = Model()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=WORLD,
        strategy="ddp",
        max_epochs=3,
        max_steps=-1 if resumes else 10,  # the third batch of the second epoch
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            ModelCheckpoint(out, "last", every_n_train_steps=1, enable_version_counter=False)
        ],
    )
    trainer.fit(model, loader, ckpt_path=out / "last.ckpt" if resumes else None)
    return {"seen": model.seen, "length": len(loader)}


def by_trainer(data: str, out: Path, *, resumes: bool) -> dict[str, Any]:
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen: list[list[int]] = []

        def forward(self, id: Any, x: Any, labels: Any) -> Any:
            self.seen.append(id.tolist())
            return {"loss": self.layer(x).mean(), "logits": labels}

    loader = datum.load(data).to_torch(batch_size=None, shuffle=True, seed=3)
    model = Model()
    arguments = TrainingArguments(
        output_dir=str(out / "trainer"),
        per_device_train_batch_size=16 // WORLD,  # Trainer counts steps, and takes them as long
        num_train_epochs=3,
        max_steps=-1 if resumes else 10,
        save_steps=10,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        learning_rate=1e-6,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=loader)
    trainer.train(resume_from_checkpoint=resumes)
    return {"seen": model.seen, "epochs": trainer.state.epoch, "steps": trainer.state.global_step}


PROGRAMS = {"accelerate": by_accelerate, "lightning": by_lightning, "trainer": by_trainer}


def main(name: str, data: str, out: str, resumes: str) -> None:
    torch.set_num_threads(1)
    found = PROGRAMS[name](data, Path(out), resumes=resumes == "resume")
    Path(out, f"{resumes}-{RANK}.json").write_text(json.dumps(found))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
