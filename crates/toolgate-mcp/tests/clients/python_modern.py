"""The Python SDK of the era in which requests stand alone (mcp 2.x)."""

import asyncio

from mcp import Client as Sdk
from mcp import StdioServerParameters, types

import story


class Client:
    def __init__(self, sdk, asked):
        self.sdk, self.asked = sdk, asked

    def structured(self, result):
        return result.structured_content

    def is_error(self, result):
        return result.is_error

    async def tools(self):
        return (await self.sdk.list_tools()).tools

    async def call(self, name, arguments):
        return await self.sdk.call_tool(name, arguments)

    async def read(self, uri):
        return await self.sdk.read_resource(uri)

    async def cancel(self, name, arguments, when):
        task = asyncio.create_task(self.sdk.call_tool(name, arguments))
        await when()
        task.cancel()


async def main():
    program, workspace, environment = story.arguments()
    server = StdioServerParameters(command=program, args=["serve", "--stdio"], cwd=workspace, env=environment)
    asked = []

    async def approve(_context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "yes"})

    async with Sdk(server, elicitation_callback=approve) as sdk:
        assert sdk.session.protocol_version == "2026-07-28", sdk.session.protocol_version
        await story.tell(Client(sdk, asked), workspace)


asyncio.run(main())
