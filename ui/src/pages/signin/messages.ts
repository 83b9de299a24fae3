/** The texts of the sign-in pages, by the file that shows them. */

// In more than one file
export const signIn = "Sign in";
export const name = "Name";
export const password = "Password";

// LinkPreview
export const approvalTitle = "Approval · Interlock";
export const approval = "Approval";
export const loadingApproval = "Loading approval";
export const thisLinkIsFor = "This link is for";
export const signInOrNothingLeft = (isOpen: boolean) =>
  `. ${isOpen ? "Sign in to see everything and to decide." : "There is nothing left to decide."}`;
export const signInAnotherWay = "Sign in another way";
export const valuesAreShortened = "Long values and lists are shortened here. Sign in to see all of it.";
export const eMailMeCode = "E-mail me a code";
export const codeWasSent = (person: string) =>
  `A code was sent to ${person}. It is valid for ten minutes, in this browser. If it does not arrive, sign in another way: at most three codes are sent in ten minutes.`;
export const code = "Code";
export const sendAnotherCode = "Send another code";

// SignIn
export const signInTitle = "Sign in · Interlock";
export const forgotPassword = "No password yet, or forgot it? An admin can create a sign-in link for you.";
export const signInWithYourOrganisation = "Sign in with your organisation";
export const anotherWorkspace = "Another workspace";
export const workspace = "Workspace";

// SignInFrame
export const interlock = "interlock";

// Welcome
export const welcomeTitle = "Welcome · Interlock";
export const welcome = "Welcome";
export const linkSignsYouIn = (role: string, name: string, workspace: string) =>
  `This link signs you in once, as ${name || `a new ${role}`} in the workspace ${workspace}.`;
export const passwordIsOptional = " Setting a new password is optional.";
export const newPasswordHint = (newValue: boolean) =>
  `At least 12 characters.${newValue ? " You need it to sign in next time." : ""}`;
