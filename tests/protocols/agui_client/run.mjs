// Talks with a deployment through the AG-UI client of npm: `node run.mjs URL KEY`. Prints one JSON line a step.
import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const [url, key] = process.argv.slice(2);
const agent = new HttpAgent({ url, headers: { Authorization: `Bearer ${key}` } });
const tools = [{ name: "pick_colour", description: "Opens a dialog", parameters: { type: "object", properties: {} } }];

async function run(parameters = {}) {
    const heard = [];
    const { newMessages } = await agent.runAgent({ tools, ...parameters }, { onEvent: ({ event }) => void heard.push(event.type) });
    const said = newMessages.filter((each) => each.role === "assistant").map((each) => each.content);
    console.log(JSON.stringify({ heard, said, state: agent.state, interrupts: agent.pendingInterrupts, count: agent.messages.length }));
}

agent.addMessage({ id: crypto.randomUUID(), role: "user", content: "Hello" });
await run();
if (agent.pendingInterrupts.length) {
    const answers = Object.fromEntries(agent.pendingInterrupts.map((each) => [each.id, { status: "resolved" }]));
    await run({ resume: buildResumeArray(agent.pendingInterrupts, answers) });
}
agent.addMessage({ id: crypto.randomUUID(), role: "user", content: [{ type: "text", text: "Thank you" }] });
await run().catch((error) => console.log(JSON.stringify({ error: String(error) })));
