/** The texts of the tools that agents declare, by the file that shows them. */

// DeclaredTools
export const declaredByAgents = "Declared by agents";
export const loadingTools = "Loading tools";
export const noAgentHasDeclaredATool = "No agent has declared a tool of its own yet.";
export const toolsDeclaredByAgents = "Tools declared by agents";
export const firstToolsAreShown = (count: number) => `The first ${count} tools are shown.`;
export const effectUnknown = "effect unknown";
export const last = ", last";
export const declaredDifferently = (changed: string) =>
  `An agent now declares it differently: ${changed}. Such calls require approval.`;
export const checkName = (lookalikes: string) => `Check the name: ${lookalikes}.`;
export const itsDeclaredEffectIsIgnored = (namedBy: string) => `Its declared effect is ignored: ${namedBy}.`;
export const definition = "Definition";
export const effectOf = (name: string) => `Effect of ${name}`;
export const effect = "effect?";
export const pinTool = (name: string) => `Pin ${name}`;
export const pinAgain = "Pin again";
export const pin = "Pin";
export const unpinTool = (name: string) => `Unpin ${name}`;
export const unpin = "Unpin";
export const secretArguments = (secret: string) => `Secret: ${secret}. `;
export const idempotent = "Idempotent. ";
export const pinnedBy = (person: string) => `Pinned by ${person},`;
export const noSchema = "No schema.";
export const schemaOf = (name: string) => `Schema of ${name}`;
export const pinAllToolsOfThisAgent = "Pin all tools of this agent";
export const pinToolsQuestion = (count: number) =>
  `Pin ${count === 1 ? "1 tool" : `${count} tools`} as declared?`;
export const idempotentSuffix = ", idempotent";
export const secretSuffix = (secret: string) => `, secret: ${secret}`;
export const notIncludedPinOneByOne = "Not included, pin one by one:";
export const pinTools = (count: number) => `Pin ${count === 1 ? "1 tool" : `${count} tools`}`;
export const cancel = "Cancel";

// pins
export const itsEffectIsNotDeclared = "its effect is not declared";
export const declaredEffectsAreNotTrusted =
  "The policy does not trust declared effects: declared tools need approval until they are pinned.";
export const noToolIsTrusted = "No tool is trusted on its declaration alone.";
export const oneToolIsTrusted = "1 tool is trusted on its declaration alone";
export const toolsAreTrusted = (count: number) => `${count} tools are trusted on their declaration alone`;
export const onlyAgentsStateThis = (tools: string, them: string) =>
  `${tools}: only agents state what ${them === "it" ? "it does" : "they do"}. Pin ${them}, or set trust_declared: false in the policy.`;
export const itsNameLooksLike = (name: string, others: string) => `its name, ${name}, looks like ${others}`;
export const callCount = (count: number) => (count === 1 ? "1 call" : `${count.toLocaleString("en")} calls`);
export const declaredBySuffix = (agents: string) => `, declared by ${agents}`;
export const in30Days = (calls: string, agents: string) => `${calls} in 30 days${agents}`;
