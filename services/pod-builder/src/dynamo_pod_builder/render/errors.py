"""Why something cannot be rendered, in a message that a status condition can quote."""


class RenderError(Exception):
    """A spec cannot be rendered, or requests something that this platform or this cluster cannot run.

    `component` is the component at fault ("" for the graph itself), `path` the field in it, `message` the problem, and
    `advice` the remedy.
    """

    def __init__(self, component: str, path: str, message: str, advice: str = "") -> None:
        self._parts = component, path, message, advice
        where = ": ".join(part for part in (f"component {component}" if component else "", path) if part)
        text = f"{where}: {message}" if where else message
        super().__init__(f"{text}; {advice}" if advice else text)

    def of_pods(self, pods: str) -> "RenderError":
        """The same error for some of the component's pods, if it is about their template."""
        component, path, message, advice = self._parts
        if not path.startswith("podTemplate"):
            return self
        return RenderError(component, f"{path} of {pods}", message, advice)
