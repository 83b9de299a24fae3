/**
 * Whether a sentence that lists arguments begins with the tool's exact name: then a row need not repeat it. It is the
 * name of this call's tool, whoever wrote the sentence.
 */
export function beginsWithToolName(sentence: string, tool: string): boolean {
  const start = `Run ${tool}`;
  return sentence === start || sentence.startsWith(`${start}: `);
}
