"""Outcomes as one self-contained HTML file with plots."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from dynamo_planner.core.observation import Pool
from dynamo_planner.replay.engine import Job
from dynamo_planner.replay.outcome import HEADER, ReplayOutcome, row

BUCKET = 10.0
"""Seconds of requests in one point of a latency curve."""
MOST_DECISIONS = 200
STYLE = """body{font-family:system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .8em;border-bottom:1px solid #ccc;text-align:right}
td:first-child,th:first-child{text-align:left}details{margin:.5em 0}.why td{text-align:left}"""


def report(outcomes: Sequence[ReplayOutcome], title: str, remarks: Sequence[str] = ()) -> str:
    """The whole page, including plotly's script."""
    from plotly.graph_objects import Figure, Scatter  # noqa: PLC0415 - slow, and only reports need it
    from plotly.subplots import make_subplots  # noqa: PLC0415

    panels = ("requests/s", "replicas", "GPUs taken", "TTFT p95, ms", "mean ITL p95, ms", "share within both targets")
    figure: Figure = make_subplots(
        rows=len(panels), cols=1, shared_xaxes=True, vertical_spacing=0.03, subplot_titles=panels
    )

    def line(panel: int, xs: Sequence[float], ys: Sequence[float], name: str, group: str, **style: Any) -> None:
        shown = panel == 2
        figure.add_trace(
            Scatter(x=list(xs), y=list(ys), name=name, legendgroup=group, showlegend=shown, line=style),
            row=panel,
            col=1,
        )

    for place, outcome in enumerate(outcomes):
        colour, times = COLOURS[place % len(COLOURS)], [sample.at for sample in outcome.samples]
        if place == 0:
            line(1, times, [sample.rate for sample in outcome.samples], "requests/s", "rate", color="#777", width=1)
        for pool in outcome.graph.replicas:
            dash = "solid" if pool is Pool.PREFILL or len(outcome.graph.replicas) == 1 else "dash"
            ready = [float(sample.ready[pool]) for sample in outcome.samples]
            line(2, times, ready, f"{outcome.name}: {pool.value}", outcome.name, color=colour, dash=dash, shape="hv")
        line(3, times, [float(s.gpus) for s in outcome.samples], outcome.name, outcome.name, color=colour, shape="hv")
        curves = _curves(outcome)
        for panel, values in enumerate(curves[1:], start=4):
            line(panel, curves[0], values, outcome.name, outcome.name, color=colour)
    first = outcomes[0].graph
    figure.add_hline(y=1000 * first.ttft, line_dash="dot", row=4, col=1)
    figure.add_hline(y=1000 * first.itl, line_dash="dot", row=5, col=1)
    figure.update_yaxes(type="log", row=4, col=1)
    figure.update_xaxes(title_text="seconds", row=len(panels), col=1)
    figure.update_layout(height=220 * len(panels), margin={"t": 40, "l": 60, "r": 20, "b": 40}, template="plotly_white")
    plot = figure.to_html(full_html=False, include_plotlyjs=True)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(note)}</p>" for note in remarks),
        _table([HEADER, *(row(outcome) for outcome in outcomes)]),
        plot,
        *(_decisions(outcome) for outcome in outcomes if outcome.actions),
        "</html>",
    ]
    return "\n".join(parts)


COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#e377c2")


def _curves(outcome: ReplayOutcome) -> tuple[list[float], list[float], list[float], list[float]]:
    """Times, p95 of TTFT and of ITL, and the share within both targets, by arrival time of requests."""
    buckets: dict[int, list[Job]] = {}
    for job in outcome.jobs:
        buckets.setdefault(int(job.request.at // BUCKET), []).append(job)
    parts = [replace(outcome, jobs=jobs) for _, jobs in sorted(buckets.items())]
    return (
        [(bucket + 0.5) * BUCKET for bucket in sorted(buckets)],
        [part.ttft(0.95) for part in parts],
        [part.itl(0.95) for part in parts],
        [part.attainment() for part in parts],
    )


def _table(rows: Sequence[Sequence[str]], kind: str = "") -> str:
    head, *body = rows
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in body]
    return f"<table class={kind or 'figures'}>{''.join(lines)}</table>"


def _decisions(outcome: ReplayOutcome) -> str:
    rows = [
        (f"{action.at:.0f}", f"{action.pool.value} {action.before} → {action.after}", action.reason, action.message)
        for action in outcome.actions[:MOST_DECISIONS]
    ]
    left = len(outcome.actions) - len(rows)
    more = f"<p>and {left} more</p>" if left else ""
    return (
        f"<details><summary>{escape(outcome.name)}: {len(outcome.actions)} changes of a pool</summary>"
        f"{_table([('second', 'change', 'reason', 'why'), *rows], 'why')}{more}</details>"
    )
