"""The Python SDK of the era with a handshake (mcp 1.x)."""

import asyncio

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

import story


class Client:
    def __init__(self, session, asked):
        self.session, self.asked = session, asked

    def structured(self, result):
        return result.structuredContent

    def is_error(self, result):
        return result.isError

    async def tools(self):
        return (await self.session.list_tools()).tools

    async def call(self, name, arguments):
        return await self.session.call_tool(name, arguments)

    async def read(self, uri):
        return await self.session.read_resource(uri)

    async def cancel(self, name, arguments, when):
        request = self.session._request_id
        task = asyncio.create_task(self.session.call_tool(name, arguments))
        await when()
        params = types.CancelledNotificationParams(requestId=request, reason="enough")
        cancelled = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(cancelled))
        task.cancel()


async def main():
    program, workspace, environment = story.arguments()
    server = StdioServerParameters(command=program, args=["serve", "--stdio"], cwd=workspace, env=environment)
    asked = []

    async def approve(_context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "yes"})

    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, elicitation_callback=approve) as session:
            await session.initialize()
            await story.tell(Client(session, asked), workspace)


asyncio.run(main())
