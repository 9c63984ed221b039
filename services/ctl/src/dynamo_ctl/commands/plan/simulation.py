"""The work of `dynamoctl plan replay`: reads files and options, runs the replay, and writes a table and a report."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from dynamo_planner.core.observation import Pool
from dynamo_planner.core.policies import PolicyName
from dynamo_planner.core.profile import EngineGpus, Profile, ProfileError
from dynamo_planner.core.warmup import Interval, WarmupError, intervals
from dynamo_planner.profile_files import read_profile
from dynamo_planner.replay import traces
from dynamo_planner.replay.comparison import ReplayInput
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.outcome import ReplayOutcome, table
from dynamo_planner.replay.report import report
from dynamo_planner.replay.traces import TraceError, TraceRequest, read_trace
from dynamo_shared.api.contracts import contract_checks
from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_ctl import files
from dynamo_ctl.commands.plan import ReplayRequest
from dynamo_ctl.errors import CtlError, ExitCode

Generator = Callable[..., list[TraceRequest]]
"""Generates the requests of a trace. The argument describes one request."""
GENERATED_SECONDS = 1800.0
"""Length of a generated trace without --duration. Seconds."""
STATIC_BUDGET = 16
"""Largest number of GPUs in the search for the best static split, if the configuration has no budget."""


def run(options: ReplayRequest, say: Callable[[str], None], remark: Callable[[str], None]) -> None:
    """Replay, print the table, and write the report. Raises CtlError for invalid arguments.

    `remark` gets the parts of the configuration that have no effect.
    """
    if options.output is not None and not options.output.parent.is_dir():
        raise CtlError(f"--output {options.output}: there is no folder {options.output.parent}", ExitCode.USAGE)
    config = _config(options.config, remark)
    policies = [_policy(name) for name in options.policies]
    profile = _profile(options.profiles, config)
    requests, seconds = _requests(options)
    graph = replace(
        Graph.of(config, startup=options.startup, max_kv_tokens=profile.max_kv_tokens),
        max_num_batched_tokens=options.max_batched_tokens,
        max_num_seqs=options.max_seqs,
        transfer=options.transfer / 1e6,
        cluster_gpus=options.cluster_gpus,
    )
    splits = [(text, _split(text, graph)) for text in options.splits]
    warmup = _warmup(config)
    replay = ReplayInput(requests=requests, graph=graph, profile=profile, until=seconds)
    outcomes = [replay.policy(name, config, warmup) for name in policies]
    for text, split in splits:
        if split is not None:
            outcomes.append(replay.static(split))
            continue
        limit = config.max_gpu_budget if config.max_gpu_budget > 0 else STATIC_BUDGET
        best = replay.best_static(limit)
        if not best:
            raise CtlError(f"--static {text}: no split has {limit} GPUs or fewer; raise max_gpu_budget")
        outcomes.append(replace(best[0], name=f"best {best[0].name}"))
    if not outcomes:
        raise CtlError("nothing to replay: give --policy, --static, or both", ExitCode.USAGE)
    head = _headline(options, config, outcomes[0])
    for line in (head, *table(outcomes)):
        say(line)
    if options.output is not None:
        options.output.write_text(report(outcomes, "Plan replay", [head]), encoding="utf-8")
        say(f"report: {options.output}")


def _headline(options: ReplayRequest, config: PlannerConfig, outcome: ReplayOutcome) -> str:
    return (
        f"{len(outcome.jobs)} requests in {outcome.seconds:.0f} s ({options.trace}), TTFT {config.ttft_ms:g} ms, "
        f"ITL {config.itl_ms:g} ms, start-up {options.startup:g} s"
    )


def _config(file: Path, remark: Callable[[str], None]) -> PlannerConfig:
    written = files.document(file, "a PlannerConfig", ": in a ConfigMap, the text of its key planner_config.json")
    problems = contract_checks.errors(PlannerConfig, written)
    if problems:
        raise CtlError("\n".join(f"{files.title(file)}: {each.path}: {each.message}" for each in problems))
    for each in contract_checks.warnings(PlannerConfig, written):
        remark(f"{files.title(file)}: {each.path}: {each.message}")
    config = PlannerConfig.model_validate(written)
    if config.power_limit is not None:
        remark(f"{files.title(file)}: total_gpu_power_limit: not replayed; only the graph has the power limits of GPUs")
    return config


def _policy(name: str) -> PolicyName:
    for known in get_args(PolicyName):
        if known == name:
            return known  # type: ignore[no-any-return]
    raise CtlError(f"--policy {name}: write {' or '.join(get_args(PolicyName))}", ExitCode.USAGE)


def _profile(paths: Sequence[Path], config: PlannerConfig) -> Profile:
    # Without a number in the configuration, the simulation assumes engines of one GPU.
    gpus = EngineGpus(prefill=config.prefill_engine_num_gpu or 1, decode=config.decode_engine_num_gpu or 1)
    try:
        return read_profile(paths, gpus).complete()
    except ProfileError as error:
        raise CtlError(str(error)) from error


def _warmup(config: PlannerConfig) -> list[Interval]:
    if not config.load_predictor_warmup_trace:
        return []
    file = Path(config.load_predictor_warmup_trace)
    try:
        lines = files.read(file).splitlines()
        return intervals(lines, config.throughput_adjustment_interval_seconds, files.title(file))
    except WarmupError as error:
        raise CtlError(str(error)) from error


def _split(text: str, graph: Graph) -> dict[Pool, int] | None:
    """Replicas of a split; None for `best`."""
    if text == "best":
        return None
    pair = re.fullmatch(r"([1-9]\d*)[Pp]([1-9]\d*)[Dd]", text)
    if graph.disaggregated and pair:
        return {Pool.PREFILL: int(pair[1]), Pool.DECODE: int(pair[2])}
    if not graph.disaggregated and re.fullmatch(r"[1-9]\d*", text):
        return {Pool.DECODE: int(text)}
    form = "2P3D" if graph.disaggregated else "4, replicas of the one pool of mode agg,"
    raise CtlError(f"--static {text}: write {form} or best", ExitCode.USAGE)


def _requests(options: ReplayRequest) -> tuple[list[TraceRequest], float | None]:
    """The requests of a file or of a generator, and the seconds to plan for (None: to the last request)."""
    kind, _, rest = options.trace.partition(":")
    if kind not in GENERATORS or not rest:
        try:
            requests = read_trace(files.read(Path(options.trace)).splitlines(), options.trace)
        except TraceError as error:
            raise CtlError(str(error)) from error
        except CtlError as error:
            forms = ", ".join(form for form, _ in GENERATORS.values())
            raise CtlError(f"{error}; a trace is a file, or one of {forms}") from error
        return _within(requests, options), options.duration
    form, generator = GENERATORS[kind]
    try:
        generated = generator(rest, options.duration or GENERATED_SECONDS)(
            isl=options.isl, osl=options.osl, seed=options.seed
        )
    except TraceError as error:
        raise CtlError(f"--trace {options.trace}: {error}", ExitCode.USAGE) from error
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise CtlError(f"--trace {options.trace}: write {form}, with numbers above 0", ExitCode.USAGE) from error
    seconds = options.duration or (None if kind == "ladder" else GENERATED_SECONDS)
    return _within(generated, options), seconds


def _within(requests: list[TraceRequest], options: ReplayRequest) -> list[TraceRequest]:
    """The requests of the simulated time. CtlError if there are none."""
    kept = [each for each in requests if options.duration is None or each.at <= options.duration]
    if not kept:
        message = f"--trace {options.trace}: has no requests; use higher rates or a longer --duration"
        raise CtlError(message, ExitCode.USAGE)
    return kept


def _numbers(text: str, count: int) -> list[float]:
    numbers = [float(part) for part in text.split(",")]
    if len(numbers) != count or not all(0 <= number < 1e6 for number in numbers):
        raise ValueError(text)
    return numbers


def _sine(text: str, seconds: float) -> Generator:
    low, high, period = _numbers(text, 3)
    return partial(traces.sine, low=low, high=high, period=period, seconds=seconds)


def _ladder(text: str, _seconds: float) -> Generator:
    steps = [_numbers(step.replace("x", ","), 2) for step in text.split(",")]
    return partial(traces.ladder, steps=[(rate, seconds) for rate, seconds in steps])


def _bursts(text: str, seconds: float) -> Generator:
    low, high, every, length = _numbers(text, 4)
    if every <= 0:
        raise ValueError(text)
    return partial(traces.bursts, low=low, high=high, every=every, length=length, seconds=seconds)


def _constant(text: str, seconds: float) -> Generator:
    (rate,) = _numbers(text, 1)
    return partial(traces.constant, rate=rate, seconds=seconds)


#: For each kind of generated trace: its syntax, and its generator.
GENERATORS: dict[str, tuple[str, Callable[[str, float], Generator]]] = {
    "sine": ("sine:LOW,HIGH,PERIOD", _sine),
    "ladder": ("ladder:RATExSECONDS,RATExSECONDS,...", _ladder),
    "bursts": ("bursts:LOW,HIGH,EVERY,LENGTH", _bursts),
    "constant": ("constant:RATE", _constant),
}
