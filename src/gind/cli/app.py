"""Commands and their options: parsing only."""

from pathlib import Path
from typing import Annotated

import typer

from gind.cli.failures import errors

__all__ = ["app", "main"]

app = typer.Typer(
    help="Implicit graph neural networks whose equilibria are reached and certified.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
datasets_app = typer.Typer(help="The datasets there are, and what is on disk.", invoke_without_command=True)
app.add_typer(datasets_app, name="datasets")

Data = Annotated[
    Path | None, typer.Option("--data", help="Directory with datasets (default: $GIND_DATA).", envvar="GIND_DATA")
]
Run = Annotated[Path, typer.Argument(help="Directory of a run.", show_default=False)]
Other = Annotated[str | None, typer.Argument(help="Other data than the run's own: a name or a path.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads to compute with.")]


@app.command()
def train(
    dataset: Annotated[str | None, typer.Argument(help="A name (gind datasets), or the path of a graph.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="See: gind models.", show_default="gind")] = None,
    data: Data = None,
    config: Annotated[Path | None, typer.Option("--config", help="TOML file, such as config.toml of a run.")] = None,
    split: Annotated[int | None, typer.Option("--split", min=0, show_default="0")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, show_default="0")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Directory of the run.", show_default="runs/DATASET-MODEL-SPLIT-SEED")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="See: gind keys.")] = None,
    beside: Annotated[
        list[str] | None, typer.Option("--beside", metavar="MODEL", help="Also train this model, same data and split.")
    ] = None,
    checkpoint_every: Annotated[int, typer.Option("--checkpoint-every", min=1, help="In epochs.")] = 10,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write scalars for TensorBoard.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    threads: Threads = None,
) -> None:
    """Train a model on a dataset or on your own graph; leaves weights, config and report in a directory.

    Your own graph is a directory with nodes.csv (id, label, features, maybe split) and edges.csv (source, target,
    maybe weight), also .parquet or .npz, or a GraphML file.
    """
    with errors():
        from gind.cli import commands

        given = {"dataset": dataset, "split": split, "seed": seed}
        commands.train(
            commands.Request(
                options={key: value for key, value in given.items() if value is not None},
                model=model,
                config=config,
                assignments=tuple(set_ or ()),
                data=data,
                out=out,
                beside=tuple(beside or ()),
                resume=resume,
                overwrite=overwrite,
                checkpoint_every=checkpoint_every,
                tensorboard=tensorboard,
                quiet=quiet,
                threads=threads,
            )
        )


@app.command()
def evaluate(
    run: Run,
    dataset: Other = None,
    data: Data = None,
    split: int | None = None,
    json: Json = False,
    threads: Threads = None,
) -> None:
    """Metric and loss of a trained run on train, validation and test part."""
    with errors():
        from gind.cli import commands

        commands.use_threads(threads)
        commands.evaluate(run, dataset, data, split, json)


@app.command()
def predict(
    run: Run,
    dataset: Other = None,
    data: Data = None,
    out: Annotated[Path | None, typer.Option("--out", help="CSV file.", show_default="RUN/predictions.csv")] = None,
    threads: Threads = None,
) -> None:
    """Predict every node (or graph), with probabilities and the residual and bound of the equilibrium."""
    with errors():
        from gind.cli import commands

        commands.use_threads(threads)
        commands.predict(run, dataset, data, out)


@app.command()
def certify(run: Run, dataset: Other = None, data: Data = None, json: Json = False, threads: Threads = None) -> None:
    """The equilibrium certificate of a trained run on given data; exit code 1 if a tolerance is not reached."""
    with errors():
        from gind.cli import commands

        commands.use_threads(threads)
        commands.certify(run, dataset, data, json)


@app.command()
def reproduce(
    item: Annotated[str | None, typer.Argument(help="A table or figure of the paper, or the path of a sheet.")] = None,
    dataset: Annotated[list[str] | None, typer.Option("--dataset", help="Only this dataset.")] = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="Only this model.")] = None,
    splits: Annotated[str | None, typer.Option("--splits", help="Only these, such as 0-2 or 0,5.")] = None,
    data: Data = None,
    results: Annotated[Path, typer.Option("--results", help="Where reports are kept.")] = Path("results"),
    work: Annotated[Path, typer.Option("--work", help="Where checkpoints and weights go.")] = Path("runs"),
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes, one thread each.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Every item in small, in two minutes; keeps nothing.")] = False,
) -> None:
    """Run every cell of an item that has no report yet, and show it beside the paper; without one, list the items.

    Stop and start again as you like.
    """
    with errors():
        from gind.cli import commands
        from gind.cli.reproduction import ReproduceRequest

        commands.reproduce(
            ReproduceRequest(
                item=item,
                datasets=tuple(dataset or ()),
                models=tuple(model or ()),
                splits=splits,
                data=data,
                results=results,
                work=work,
                jobs=jobs,
                quick=quick,
            )
        )


@app.command()
def report(
    item: Annotated[str | None, typer.Argument(help="A table or figure of the paper, or the path of a sheet.")] = None,
    results: Annotated[Path, typer.Option("--results", help="Where reports are kept.")] = Path("results"),
    out: Annotated[
        Path | None, typer.Option("--out", help="Markdown file.", show_default="docs/results.md, or print an item")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="One HTML file with everything in it.")] = None,
) -> None:
    """Results beside those of the paper, from the reports that are there: all items, one of them, or a sheet."""
    with errors():
        from gind.cli import commands
        from gind.cli.reproduction import ReportRequest

        commands.report(ReportRequest(item=item, results=results, out=out, html=html))


@app.command()
def tune(
    search: Annotated[Path, typer.Argument(help="TOML file with a model, datasets and ranges of keys.")],
    dataset: Annotated[list[str] | None, typer.Option("--dataset", help="Only this dataset.")] = None,
    trials: Annotated[int | None, typer.Option("--trials", min=1, help="Instead of the file's number.")] = None,
    data: Data = None,
    out: Annotated[Path, typer.Option("--out", help="Where journals and results go.")] = Path("tuned"),
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes, one thread each.")] = 1,
) -> None:
    """Search the settings that validate best; stop and start again as you like. Test parts are never evaluated."""
    with errors():
        from gind.cli import commands

        commands.tune(search, (tuple(dataset or ()), trials), data, out, jobs)


@app.command()
def bench(
    datasets: Annotated[list[str] | None, typer.Argument(help="Measure on these: names, or paths of graphs.")] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", help="On a generated graph of this shape, such as million.", show_default="four"),
    ] = None,
    data: Data = None,
    hidden: Annotated[int | None, typer.Option("--hidden", min=1, help="Channels.", show_default="64")] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Best of how many.", show_default="7")] = None,
    threads: Threads = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small and rough, in seconds.")] = False,
    large: Annotated[bool, typer.Option("--large", help="Curves up to 10 million edges.")] = False,
    measure: Annotated[list[str] | None, typer.Option("--measure", help="Only this, such as solve.")] = None,
    memory: Annotated[bool | None, typer.Option("--memory/--no-memory", help="Peak memory, slowly.")] = None,
    memory_of: Annotated[list[str] | None, typer.Option("--memory-of", help="Of this measure only.")] = None,
    saved: Annotated[
        list[Path] | None, typer.Option("--from", help="Show this report (--json) instead of measuring.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="File for the report.")] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Markdown page whose tables to replace.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Directory for a figure of the curves.")] = None,
) -> None:
    """Time and memory beside edge-storing kernels, IGNN and EIGNN; what the machine could do; growth with size."""
    with errors():
        from gind.cli import commands
        from gind.cli.bench import BenchRequest

        commands.bench(
            BenchRequest(
                datasets=tuple(datasets or ()),
                shapes=tuple(shape or ()),
                data=data,
                hidden=hidden,
                rounds=rounds,
                threads=threads,
                quick=quick,
                large=large,
                measures=tuple(measure or ()),
                memory=memory,
                memory_of=tuple(memory_of or ()),
                saved=tuple(saved or ()),
                json=json,
                page=page,
                out=out,
            )
        )


@app.command()
def keys(
    model: Annotated[str, typer.Argument(help="A model: gind models.")] = "gind",
    dataset: Annotated[str | None, typer.Option("--dataset", help="With the defaults of this dataset.")] = None,
) -> None:
    """Every key that --set and config files know, with the default that runs."""
    with errors():
        from gind.cli import commands

        commands.keys(model, dataset)


@app.command()
def models() -> None:
    """The models there are, and what they are for."""
    with errors():
        from gind.cli import commands

        commands.models()


@app.command()
def doctor(data: Data = None) -> None:
    """Versions, threads, the kernel in use, its cache, and the data found."""
    with errors():
        from gind.cli import commands

        commands.doctor(data)


@datasets_app.callback()
def datasets(context: typer.Context, data: Data = None, json: Json = False) -> None:
    """List all datasets with size, homophily, duplicates, and whether they are on disk."""
    if context.invoked_subcommand is None:
        with errors():
            from gind.cli import commands

            commands.datasets(data, json)


@datasets_app.command("check")
def datasets_check(name: str, data: Data = None) -> None:
    """Verify checksums and counts of a dataset, and tell its known defects; exit code 1 if something is wrong."""
    with errors():
        from gind.cli import commands

        commands.check(name, data)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        import gind

        typer.echo(f"gind {gind.__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point."""
    app(prog_name="gind")
