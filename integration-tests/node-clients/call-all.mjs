// The official TypeScript client: lists the tools of an endpoint and calls those that it is told to, in their order.
// `node call-all.mjs FILE`; FILE holds {"url", "token", "calls": [[tool, arguments], …]}. Prints one line of JSON.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const { url, token, calls } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const asked = [];
const client = new Client(
  { name: "judge-typescript", version: "1" },
  { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } } },
);
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.method);
  return { action: "accept", content: { name: "Ada" } };
});
client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
  asked.push(request.method);
  return { role: "assistant", model: "judge", content: { type: "text", text: "a judge's words" } };
});
client.setRequestHandler(ListRootsRequestSchema, async (request) => {
  asked.push(request.method);
  return { roots: [{ uri: "file:///judge", name: "judge" }] };
});
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const listed = [];
for (let cursor; ; ) {
  const page = await client.listTools({ cursor });
  listed.push(...page.tools.map((tool) => tool.name));
  cursor = page.nextCursor;
  if (!cursor) break;
}
const results = {};
for (const [name, args] of calls) {
  try {
    // Not `callTool`: it refuses by itself what has to be called as a task.
    const params = { name, arguments: args };
    const result = await client.request({ method: "tools/call", params }, CallToolResultSchema);
    results[name] = {
      isError: result.isError ?? false,
      kinds: result.content.map((block) => block.type),
      structured: result.structuredContent !== undefined,
      text: result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n"),
    };
  } catch (error) {
    results[name] = { error: error.message, code: error.code };
  }
}
const protocol = client.transport.protocolVersion ?? "";
await client.close();
console.log(JSON.stringify({ protocol, listed, results, asked }));
