/** The texts of the live connection, by the file that shows them. */

// notifications
export const approvalNeeded = "Approval needed";
export const toolForRequester = (tool: string, requester: string) => `${tool}, for ${requester}`;
