// The same tools as peers/bare_sdk.py, for both of the servers here.
const empty = { type: "object", properties: {}, additionalProperties: false };
const note = {
  type: "object",
  properties: { text: { type: "string", description: "What to write down.", maxLength: 500 } },
  required: ["text"],
  additionalProperties: false,
};
const filler = {
  type: "object",
  properties: {
    item_id: { type: "string", description: "The id of the item, as a listing shows it." },
    summary: { type: "string", description: "One sentence that says what changed.", maxLength: 500 },
    status: { type: "string", enum: ["open", "closed"], description: "Only items in this state." },
    limit: { type: "integer", minimum: 1, maximum: 100, default: 20, description: "Page size." },
  },
  required: ["item_id"],
  additionalProperties: false,
};

export function declare(count) {
  const tools = [
    { name: "ping", description: "Answer pong and the time.", inputSchema: empty },
    { name: "note", description: "Answer as a write tool would.", inputSchema: note },
  ];
  for (let number = 0; number < count - 2; number++) {
    const description = `Change item ${number}. Use it when an item is out of date. Returns the item as it is afterwards.`;
    tools.push({ name: `change_item_${number}`, description, inputSchema: filler });
  }
  return tools;
}

export async function call(request) {
  const status = { ping: "pong", note: "noted" }[request.params.name];
  if (!status) throw new Error(`Unknown tool: ${request.params.name}`);
  const content = { status, timestamp: new Date().toISOString() };
  return { content: [{ type: "text", text: JSON.stringify(content) }], structuredContent: content };
}
