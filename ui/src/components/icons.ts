/**
 * The icons of the page, from Tabler: 16 pixels with a stroke of 1.75 unless a component says otherwise. They are
 * decoration: the element that holds one has a text or a label.
 */
export { default as IconChat } from "@tabler/icons-react/dist/esm/icons/IconMessageCircle.mjs";
export { default as IconHistory } from "@tabler/icons-react/dist/esm/icons/IconHistory.mjs";
export { default as IconAgents } from "@tabler/icons-react/dist/esm/icons/IconRobot.mjs";
export { default as IconPolicy } from "@tabler/icons-react/dist/esm/icons/IconShieldLock.mjs";
export { default as IconSearch } from "@tabler/icons-react/dist/esm/icons/IconSearch.mjs";
export { default as IconFilter } from "@tabler/icons-react/dist/esm/icons/IconFilter.mjs";
export { default as IconUser } from "@tabler/icons-react/dist/esm/icons/IconUser.mjs";
export { default as IconCheck } from "@tabler/icons-react/dist/esm/icons/IconCheck.mjs";
export { default as IconApproved } from "@tabler/icons-react/dist/esm/icons/IconCircleCheck.mjs";
export { default as IconRejected } from "@tabler/icons-react/dist/esm/icons/IconCircleX.mjs";
export { default as IconAnswered } from "@tabler/icons-react/dist/esm/icons/IconArrowBackUp.mjs";
export { default as IconClock } from "@tabler/icons-react/dist/esm/icons/IconClock.mjs";
export { default as IconWarning } from "@tabler/icons-react/dist/esm/icons/IconAlertTriangle.mjs";
export { default as IconQuote } from "@tabler/icons-react/dist/esm/icons/IconQuote.mjs";
export { default as IconUnfold } from "@tabler/icons-react/dist/esm/icons/IconChevronRight.mjs";
export { default as IconBack } from "@tabler/icons-react/dist/esm/icons/IconChevronLeft.mjs";
export { default as IconUp } from "@tabler/icons-react/dist/esm/icons/IconArrowUp.mjs";
export { default as IconDown } from "@tabler/icons-react/dist/esm/icons/IconArrowDown.mjs";
export { default as IconSend } from "@tabler/icons-react/dist/esm/icons/IconSend.mjs";
export { default as IconDelegate } from "@tabler/icons-react/dist/esm/icons/IconUserShare.mjs";
export { default as IconClaim } from "@tabler/icons-react/dist/esm/icons/IconEyeCheck.mjs";
export { default as IconLink } from "@tabler/icons-react/dist/esm/icons/IconLink.mjs";
export { default as IconCopy } from "@tabler/icons-react/dist/esm/icons/IconCopy.mjs";
export { default as IconPlus } from "@tabler/icons-react/dist/esm/icons/IconPlus.mjs";
export { default as IconClose } from "@tabler/icons-react/dist/esm/icons/IconX.mjs";
export { default as IconFreeze } from "@tabler/icons-react/dist/esm/icons/IconSnowflake.mjs";
