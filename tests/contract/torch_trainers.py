"""Programs that train with Accelerate, Lightning and Trainer: one, or several processes of one.

Each writes what its rank has seen as JSON. Started by torch.distributed.run, for each stage anew:
"train", "resume" and "more" go on within an epoch where the one before stopped.
"""

import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

import datum

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def by_accelerate(data: str, out: Path, *, stage: str) -> dict[str, Any]:
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader, skip_first_batches

    accelerator = Accelerator(cpu=True)
    ds = datum.load(data)
    model = torch.nn.Linear(1, 1)
    loader = ds.to_torch(batch_size=8, shuffle=True, seed=3)
    model, prepared = accelerator.prepare(model, loader)
    accelerator.register_for_checkpointing(loader)
    seen: dict[str, Any] = {}
    if stage != "train":
        accelerator.load_state(str(out / "accelerate"))
        seen["rest"] = ids(prepared)
    seen["next"] = ids(islice(prepared, None if stage == "more" else 3))
    accelerator.save_state(str(out / "accelerate"))
    if stage != "train":
        return seen

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


def by_lightning(data: str, out: Path, *, stage: str) -> dict[str, Any]:
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen: list[list[list[int]]] = [[], [], [], []]
            self.validated: list[int] = []

        def training_step(self, batch: Any, _: int) -> Any:
            self.seen[self.current_epoch].append(batch["id"].tolist())
            return self.layer(batch["x"]).mean()

        def validation_step(self, _: Any, number: int) -> None:
            if not number:
                self.validated.append(self.current_epoch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-6)

    loader = datum.load(data).to_torch(batch_size=8, shuffle=True, seed=3)
    model = Model()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=WORLD,
        strategy="ddp",
        max_epochs=4,
        # The third batch of the second epoch; then the fifth of the third.
        max_steps={"train": 10, "resume": 22, "more": -1}[stage],
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            ModelCheckpoint(out, "last", every_n_train_steps=1, enable_version_counter=False),
            loader.lightning_callback(),
        ],
    )
    validated = datum.load(data).to_torch(batch_size=50)
    resumed = None if stage == "train" else out / "last.ckpt"
    trainer.fit(model, loader, validated, ckpt_path=resumed)
    return {"seen": model.seen, "length": len(loader), "validated": model.validated}


def by_trainer(data: str, out: Path, *, stage: str) -> dict[str, Any]:
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
        num_train_epochs=4,
        max_steps={"train": 10, "resume": 17, "more": -1}[stage],
        save_steps=1,
        save_total_limit=1,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        learning_rate=1e-6,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=loader)
    trainer.train(resume_from_checkpoint=stage != "train")
    return {"seen": model.seen, "epochs": trainer.state.epoch, "steps": trainer.state.global_step}


PROGRAMS = {"accelerate": by_accelerate, "lightning": by_lightning, "trainer": by_trainer}


def main(name: str, data: str, out: str, stage: str) -> None:
    torch.set_num_threads(1)
    found = PROGRAMS[name](data, Path(out), stage=stage)
    Path(out, f"{stage}-{RANK}.json").write_text(json.dumps(found))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
