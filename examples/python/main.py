"""Creates a session, streams a turn, and decides what the turn asks.

    python3 -m venv .venv && .venv/bin/pip install -r requirements.txt && ./generate
    HERMES_API_KEY=$(cat ../../data/api-key) .venv/bin/python main.py "Hello, who are you?"

Everything about the server is known from `hermes_server_client`, which is
generated from its OpenAPI document.
"""

import json
import os
import sys
from collections.abc import Iterator

import httpx
from httpx_sse import connect_sse

from hermes_server_client import AuthenticatedClient, models
from hermes_server_client.api.approvals import decide_approval
from hermes_server_client.api.sessions import create_session
from hermes_server_client.api.turns import create_turn

CLEAN_UP = """/say I clean up.
/tool terminal {"command":"rm -rf build"}
/then
/say That was all."""

# The models of a session's events, by the `type` that tells them apart.
EVENTS = {
    tag.value: model
    for name, model in vars(models).items()
    if name.endswith("Event") and not name.startswith("Tenant")
    for tag in getattr(models, name + "Type", ())
}


def turn(api: AuthenticatedClient, session: str, message: str) -> Iterator[object]:
    """The events of a turn, each as the model that its type names."""
    request = models.TurnRequest(input_=message)
    made = answer(create_turn.sync(session, client=api, body=request))
    path = f"/v1/sessions/{session}/turns/{made.id}/stream"
    with connect_sse(api.get_httpx_client(), "GET", path) as source:
        source.response.raise_for_status()
        for frame in source.iter_sse():
            # Newer servers may know more types; they are to be passed over.
            if model := EVENTS.get(frame.event):
                yield model.from_dict(json.loads(frame.data))


def handle(api: AuthenticatedClient, event: object, spoken: set[str]) -> bool:
    """Shows the event; whether the turn is over."""
    match event:
        case models.MessageDeltaEvent():
            spoken.add(event.data.message_id)
            print(event.data.text, end="", flush=True)
        case models.MessageCompletedEvent() if event.data.message.role == "assistant":
            # Whoever comes late to a message gets it as a whole, without deltas.
            late = event.data.message.id not in spoken
            parts = event.data.message.content if late else []
            print("".join(getattr(part, "text", "") for part in parts))
        case models.ToolCallStartedEvent():
            print(f"[{event.data.tool_call.name} runs]")
        case models.ToolCallCompletedEvent() | models.ToolCallDeniedEvent():
            print(f"[{event.data.tool_call.name}: {event.data.tool_call.status}]")
        case models.ApprovalRequestedEvent():
            decide(api, event.data.approval)
        case models.ApprovalResolvedEvent() | models.ApprovalExpiredEvent():
            print(f"[approval {event.data.approval.status}]")
        case (
            models.TurnCompletedEvent()
            | models.TurnInterruptedEvent()
            | models.TurnCancelledEvent()
            | models.TurnFailedEvent()
            | models.TurnRolledBackEvent()
        ):
            ended = event.data.turn
            print(f"[turn {ended.status}, {ended.usage.output_tokens} tokens]")
            return True
    return False


def decide(api: AuthenticatedClient, approval: models.Approval) -> None:
    print(approval.title, json.dumps(approval.arguments), sep="\n", file=sys.stderr)
    # The digest makes sure that what is decided is what was shown.
    decision = models.DecisionRequest(choose(approval.choices), digest=approval.digest)
    decided = answer(decide_approval.sync(approval.id, client=api, body=decision))
    print(f"[{decided.decision.choice} by {decided.decision.by}]")


def choose(choices: list[models.Choice]) -> models.Choice:
    while True:
        print(*choices, sep=" / ", end="? ", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            sys.exit("nobody decides; the approval waits")
        if line.strip() in choices:
            return models.Choice(line.strip())


def answer(answered):
    """What was asked for; the server's problem ends the program."""
    if isinstance(answered, models.Problem):
        sys.exit(f"{answered.status} {answered.code}: {answered.detail}")
    return answered


def main() -> None:
    api = AuthenticatedClient(
        base_url=os.environ.get("HERMES_URL", "http://127.0.0.1:8642"),
        token=os.environ.get("HERMES_API_KEY", ""),
        # A quiet stream says that it lives every 15 seconds.
        timeout=httpx.Timeout(60),
    )
    new = models.NewSession(preset="hermes-api-server", title="From Python")
    session = answer(create_session.sync(client=api, body=new))
    print(session.id)
    message = sys.argv[1] if len(sys.argv) > 1 else CLEAN_UP
    spoken: set[str] = set()
    for event in turn(api, session.id, message):
        if handle(api, event, spoken):
            break


if __name__ == "__main__":
    main()
