"""`dynamoctl render`."""

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Config, Manifests, Namespace

NOTE = "# Objects of {source}, without owner references: these need the uid of an existing owner."
NOTHING = "{source}: has no DynamoGraphDeployment and no DynamoComponentDeployment, so there is nothing to render"
CONVERT = "; dynamoctl convert turns its manifests of earlier kinds into graphs"


def render(
    files: Manifests,
    namespace: Namespace = None,
    grove: Annotated[
        bool, typer.Option("--grove", help="Render for a cluster with Grove. Default: with LeaderWorkerSet.")
    ] = False,
    config: Config = None,
) -> None:
    """Print the Kubernetes objects of DynamoGraphDeployments, without any server.

    Manifests may have either API version. The ResourceClaims and ResourceClaimTemplates of all files define which GPUs
    are claimed. If the resource definitions are installed, `kubectl apply --dry-run=server -f -` accepts the output.
    The command refuses what admission refuses, and prints admission's warnings on standard error.
    """
    from dataclasses import replace

    from dynamo_admission.facts import first_world
    from dynamo_pod_builder.configuration import render_config
    from dynamo_shared.api import legacy
    from dynamo_shared.api.resources import KAI_QUEUES, POD_CLIQUE_SETS
    from dynamo_shared.api.yaml_output import to_yaml

    from dynamo_ctl import files as texts
    from dynamo_ctl import offline, settings, targets
    from dynamo_ctl.claims import claims_in
    from dynamo_ctl.output import echo, echo_error

    chosen = settings.load(config)
    place = namespace or targets.cluster(None, None).namespace()
    # Without a cluster, assume all optional APIs except Grove and KAI, which change the objects of every graph.
    absent = set()
    if not grove and chosen.orchestrators.grove.enabled is not True:
        absent.add(POD_CLIQUE_SETS.group)
    if chosen.orchestrators.kai_scheduler.enabled is not True:
        absent.add(KAI_QUEUES.group)
    rules = render_config(chosen, lambda resource: resource.group not in absent)
    facts = replace(first_world(chosen).facts, grove=rules.grove)
    warnings: list[str] = []
    read = texts.each(files, lambda text: offline.manifests_of(text, place, facts, warnings.append))
    claims = dict(each for _, own in texts.of_each(read, lambda of: claims_in(of, place)) for each in own.items())
    rendered = texts.of_each(read, lambda manifests: offline.objects_of(manifests, place, rules, claims))
    for warning in dict.fromkeys(warnings):
        echo_error(f"warning: {warning}")
    for (source, objects), (_, manifests) in zip(rendered, read, strict=True):
        if objects:
            echo(NOTE.format(source=source))
            for obj in objects:
                echo(f"---\n{to_yaml(obj)}", nl=False)
        else:
            is_old = any(isinstance(each, legacy.DynamoDeployment | legacy.DynamoNimDeployment) for each in manifests)
            echo_error(NOTHING.format(source=source) + (CONVERT if is_old else ""))
