"""Why something cannot be rendered, in words that a status condition can quote."""

from __future__ import annotations


class RenderError(Exception):
    """A spec cannot become objects.

    `component` is the component at fault ("" for the graph itself), `path` the field within it, `message` what is wrong
    and `advice` what to do about it.
    """

    def __init__(self, component: str, path: str, message: str, advice: str = "") -> None:
        where = ": ".join(part for part in (f"component {component}" if component else "", path) if part)
        text = f"{where}: {message}" if where else message
        super().__init__(f"{text}; {advice}" if advice else text)
        self.component = component
        self.path = path
        self.message = message
        self.advice = advice


class NotDeployable(RenderError):
    """A component asks for what this platform or this cluster cannot run."""

    def __init__(self, component: str, reason: str, path: str = "", advice: str = "") -> None:
        super().__init__(component, path, reason, advice)
        self.reason = reason
