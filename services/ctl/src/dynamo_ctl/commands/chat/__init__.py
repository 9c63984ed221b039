"""`dynamoctl chat`."""

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Graph, JsonOutput, LineOutput, Namespace, with_options
from dynamo_ctl.commands.remote import ApiOptions


@with_options
def chat(
    graph: Graph,
    message: Annotated[
        str | None,
        typer.Argument(metavar="MESSAGE", help="One message. Default: each line of standard input is a message."),
    ] = None,
    *,
    model: Annotated[str, typer.Option(metavar="NAME", help="Model, if the graph serves several.")] = "",
    system: Annotated[str, typer.Option(metavar="TEXT", help="System message, sent before yours.")] = "",
    max_tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Limit for the tokens of an answer.")] = 1024,
    output: JsonOutput = LineOutput.TABLE,
    namespace: Namespace = None,
    api: ApiOptions,
) -> None:
    """Chat with the model of a graph. Each answer is followed by its times."""
    from dynamo_ctl.commands.chat import conversation

    if message is not None and not message.strip():
        raise typer.BadParameter("must not be empty; write a message, or omit it to type several", param_hint="MESSAGE")

    api.run(
        lambda remote: conversation.chat(
            conversation.Conversation(remote, graph, model=model, system=system, max_tokens=max_tokens),
            message,
            as_json=output is LineOutput.JSON,
        ),
        namespace,
    )
