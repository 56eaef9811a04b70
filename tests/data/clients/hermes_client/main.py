"""The typed client of the original against this server: HERMES_URL, HERMES_API_KEY."""

import asyncio
import json
import os
import urllib.request

from hermes_agent_api_client import (
    AssistantDeltaEvent,
    HermesAgentApiClient,
    HermesAuthenticationError,
    TerminalEvent,
    TerminalOutcome,
    ToolProgressEvent,
    UsageEvent,
)

BASE = os.environ["HERMES_URL"]
KEY = os.environ["HERMES_API_KEY"]

GUARDED = '/tool terminal {"command": "rm -rf never-there"}\n/then\n/say after'
TOOL = '/say I look.\n/tool terminal {"command": "echo ran"}\n/then\n/say all done'


def pending():
    """The approvals that wait, which this client does not show."""
    request = urllib.request.Request(f"{BASE}/v1/approvals?status=pending", headers={"Authorization": f"Bearer {KEY}"})
    return json.load(urllib.request.urlopen(request))["data"]


def decide(approval, choice):
    request = urllib.request.Request(
        f"{BASE}/v1/approvals/{approval}/decision",
        json.dumps({"choice": choice}).encode(),
        {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).read()


async def events(text, on_event=None, **named):
    request = {"messages": [{"role": "user", "content": text}], "stream": True}
    seen = []
    async with HermesAgentApiClient(BASE, KEY) as client:
        async for event in client.stream_chat_events(request, **named):
            seen.append(event)
            if on_event:
                await on_event(event)
    return seen


def text_of(seen):
    return "".join(event.text for event in seen if isinstance(event, AssistantDeltaEvent))


async def main():
    async with HermesAgentApiClient(BASE, KEY) as client:
        told = await client.probe_capabilities()
        assert told.chat_completions and told.chat_completions_streaming and told.auth_required
    try:
        async with HermesAgentApiClient(BASE, "wrong-key") as client:
            await client.probe_capabilities()
        raise AssertionError("a wrong key was taken")
    except HermesAuthenticationError:
        pass

    seen = await events(TOOL, session_id="typed-1", session_key="memory-1")
    assert text_of(seen) == "I look.\n\nall done", seen
    tools = [event for event in seen if isinstance(event, ToolProgressEvent)]
    assert [tool.status for tool in tools] == ["running", "completed"], tools
    assert tools[0].tool_name == "terminal" and tools[0].tool_call_id == tools[1].tool_call_id
    assert any(isinstance(event, UsageEvent) and event.total_tokens > 0 for event in seen)
    assert seen[-1] == TerminalEvent(outcome=TerminalOutcome.SUCCESS), seen[-1]

    failed = await events("/error 401")
    assert failed[-1].outcome is TerminalOutcome.UPSTREAM_ERROR, failed[-1]

    async def answer(_):
        for approval in await asyncio.to_thread(pending):
            await asyncio.to_thread(decide, approval["id"], "once")

    guarded = await events(GUARDED, answer)
    assert text_of(guarded) == "after" and guarded[-1].outcome is TerminalOutcome.SUCCESS, guarded
    print("all of it works")


asyncio.run(main())
