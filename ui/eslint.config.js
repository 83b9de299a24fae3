import parser from "@typescript-eslint/parser";
import { defineConfig } from "eslint/config";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";

const IN_CATALOGUE = "Texts that people read stand in messages.ts of their area: write {messages.name}.";
const READABLE_ATTRIBUTES =
    "/^(about|advice|alt|aria-(description|label|roledescription|valuetext)|button|consequence|data-label|description|error|heading|hint|label|legend|message|placeholder|says|text|title)$/";
const LETTERS = "/[A-Za-z]/";

/** Texts in braces: alone, with values, or chosen by a condition. */
const textsIn = (place) =>
    [
        "",
        "ConditionalExpression > ",
        "ConditionalExpression > ConditionalExpression > ",
        "LogicalExpression > ",
        "LogicalExpression > ConditionalExpression > ",
    ].flatMap((choice) => [
        `${place} > JSXExpressionContainer > ${choice}Literal[value=${LETTERS}]`,
        `${place} > JSXExpressionContainer > ${choice}TemplateLiteral > TemplateElement[value.raw=${LETTERS}]`,
    ]);

const INLINE_TEXTS = [
    `:matches(JSXElement, JSXFragment):not([openingElement.name.name=/^(Code|code|kbd)$/]) > JSXText[value=${LETTERS}]`,
    `JSXAttribute[name.name=${READABLE_ATTRIBUTES}] > Literal[value=${LETTERS}]`,
    ...textsIn(`JSXAttribute[name.name=${READABLE_ATTRIBUTES}]`),
    ...textsIn(":matches(JSXElement, JSXFragment)"),
    `Property[key.name=/^(description|label|legend|message|placeholder|title)$/] > Literal[value=${LETTERS}].value`,
];

// What the type checker and axe cannot see: hooks, and elements that the keyboard or a screen reader would miss.
const code = {
    files: ["**/*.{ts,tsx}"],
    ignores: ["src/api/schema.d.ts"], // generated
    extends: [hooks.configs.flat.recommended, a11y.flatConfigs.recommended],
    languageOptions: { parser },
    rules: {
        // What scrolls, and a card with its keys, has to be reached by keyboard.
        "jsx-a11y/no-noninteractive-tabindex": [
            "error",
            {
                tags: ["article", "pre", "section"],
                roles: ["group", "log", "region", "tabpanel"],
                allowExpressionValues: true,
            },
        ],
        // Keys are heard by the part around the field, such as Esc by a form; only clicks need a control.
        "jsx-a11y/no-noninteractive-element-interactions": [
            "error",
            { handlers: ["onClick", "onMouseDown", "onMouseUp"] },
        ],
        // Forms open because somebody asked for them, and a question begins at its harmless answer.
        "jsx-a11y/no-autofocus": "off",

        // Listeners read the newest value from a ref that is set while rendering; it troubles only the React compiler.
        "react-hooks/refs": "off",
        // Takes every ref that another hook or component hands on for a value that must not change.
        "react-hooks/immutability": "off",
        // Only says what the React compiler would leave alone, and the page is not built with it.
        "react-hooks/incompatible-library": "off",
    },
};

/** Where a text is written in place, it can be neither read with the others nor translated. */
const texts = {
    files: ["src/**/*.tsx"],
    ignores: ["**/*.test.tsx"],
    languageOptions: { parser },
    rules: {
        "no-restricted-syntax": [
            "error",
            ...INLINE_TEXTS.map((selector) => ({ selector, message: IN_CATALOGUE })),
        ],
    },
};

export default defineConfig([code, texts]);
