/** The texts of the client of the API, by the file that shows them. */

// client
export const refused = "Refused";
export const cannotBeReached = "Interlock cannot be reached. Check your connection, then try again.";
export const serverError = (status: number) => `The server answered with an error (${status}). Try again.`;
