"""`dynamoctl convert`."""

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import ApiVersion, Manifests


def convert(
    files: Manifests,
    to: Annotated[ApiVersion, typer.Option("--to", help="Version to write.")] = ApiVersion.V1BETA1,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Drop fields that the version lacks. Default: keep them in an annotation."),
    ] = False,
) -> None:
    """Print manifests in another API version, like the conversion webhook, without any server.

    Fields that the version does not have are kept in an annotation, and listed on standard error. Manifests of other
    kinds are printed unchanged.
    """
    from dynamo_shared.api.yaml_output import to_yaml

    from dynamo_ctl import files as texts
    from dynamo_ctl.commands.convert import conversion
    from dynamo_ctl.output import echo, echo_error

    converted = texts.each(files, lambda text: conversion.objects_in(text, to.value, forget=forget))
    objects = [obj for _, listed in converted for obj in listed]
    echo(to_yaml(*(each.obj for each in objects)), nl=False)
    for each in objects:
        if each.left_out:
            verb = "leaves out" if forget else "keeps in an annotation"
            echo_error(f"{each.title} {verb}, since {to.value} has no field: {', '.join(each.left_out)}")
        for remark in each.remarks:
            echo_error(f"{each.title}: {remark}")
