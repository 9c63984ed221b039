"""The cluster that a command uses: from its options, or of the platform that runs here."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dynamo_shared.kube import ConfigError, KubeClient, KubeError, config

from dynamo_ctl import running_platform
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.output import echo_error


class ClusterOptions(NamedTuple):
    """The cluster to read. None: the usual defaults."""

    kubeconfig: Path | None = None
    context: str | None = None

    async def client(self) -> KubeClient:
        """A connection to it."""
        try:
            return await KubeClient.open(
                kubeconfig=self.kubeconfig,
                context=self.context,
                field_manager="dynamoctl",
                on_retry=report_first_retry(),
            )
        except ConfigError as error:
            if self.kubeconfig is not None or self.context is not None:
                raise
            raise CtlError(f"{error}; or run this where dynamoctl up or demo runs", ExitCode.UNREACHABLE) from error

    def namespace(self) -> str:
        """The namespace of every command without `-n`, like kubectl's: the context's, in a pod the pod's, or `default`.

        Raises ConfigError for a kubeconfig that cannot be used.
        """
        return config.namespace(self.kubeconfig, self.context)


#: The cluster of the current context, or of the pod.
USUAL = ClusterOptions()


def cluster(kubeconfig: Path | None, context: str | None) -> ClusterOptions:
    """The cluster of the command line, otherwise of the platform that runs here, otherwise the usual default."""
    if kubeconfig is None and context is None and (here := running_platform.find()) is not None:
        return ClusterOptions(*here.cluster_options)
    return ClusterOptions(kubeconfig, context)


def report_first_retry() -> Callable[[KubeError], None]:
    """A function that prints once on standard error that the cluster does not answer and is retried (up to half a
    minute).
    """
    is_reported = False

    def report(error: KubeError) -> None:
        nonlocal is_reported
        if not is_reported:
            is_reported = True
            echo_error(f"dynamoctl: the cluster does not answer: {error.message}; retrying")

    return report
