"""The official Python client: lists the tools of an endpoint and calls those that it is told to, in their order.

`python call_all.py FILE`; FILE holds {"url", "token", "mode", "calls": [[tool, arguments], …]}, where `mode` is how the
client negotiates (`auto`, `legacy`). Prints one line of JSON.
"""

import asyncio
import json
import sys

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        told = json.load(file)
    asked = []

    async def elicit(_context, _params):
        asked.append("elicitation/create")
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(_context, _params):
        asked.append("sampling/createMessage")
        words = types.TextContent(type="text", text="a judge's words")
        return types.CreateMessageResult(role="assistant", model="judge", content=words)

    async def roots(_context):
        asked.append("roots/list")
        return types.ListRootsResult(roots=[types.Root(uri="file:///judge", name="judge")])

    headers = {"Authorization": f"Bearer {told['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(told["url"], http_client=http)
        client = Client(
            transport,
            mode=told["mode"],
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
        )
        async with client:
            listed, cursor = [], None
            while True:
                page = await client.list_tools(cursor=cursor)
                listed += [tool.name for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
            results = {}
            for name, arguments in told["calls"]:
                try:
                    result = await client.call_tool(name, arguments)
                    texts = [block.text for block in result.content if block.type == "text"]
                    results[name] = {
                        "isError": bool(result.is_error),
                        "kinds": [block.type for block in result.content],
                        "structured": result.structured_content is not None,
                        "text": "\n".join(texts),
                    }
                except Exception as error:  # Whatever goes wrong is told, and judged by the story.
                    results[name] = {"error": str(error), "code": getattr(error, "code", None)}
            protocol = client.protocol_version
    print(json.dumps({"protocol": protocol, "listed": listed, "results": results, "asked": asked}))


asyncio.run(main())
