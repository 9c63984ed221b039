"""Outcomes as a table of text."""

from collections.abc import Sequence

from dynamo_planner.replay.outcome import ReplayOutcome

HEADER = ("run", "within both", "TTFT", "ITL", "TTFT p50/p99 ms", "ITL p50/p99 ms", "GPU-hours", "scalings")


def row(outcome: ReplayOutcome) -> tuple[str, ...]:
    """One outcome's cells."""
    return (
        outcome.name,
        f"{100 * outcome.attainment():.1f} %",
        f"{100 * outcome.ttft_attainment():.1f} %",
        f"{100 * outcome.itl_attainment():.1f} %",
        f"{outcome.ttft(0.5):.0f} / {outcome.ttft(0.99):.0f}",
        f"{outcome.itl(0.5):.1f} / {outcome.itl(0.99):.1f}",
        f"{outcome.gpu_hours:.2f}",
        str(outcome.events),
    )


def table(outcomes: Sequence[ReplayOutcome]) -> list[str]:
    """Lines, names to the left and figures to the right."""
    rows = [HEADER, *(row(outcome) for outcome in outcomes)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADER))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        for cells in rows
    ]
