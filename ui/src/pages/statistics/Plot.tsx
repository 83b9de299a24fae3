import { Paper, Stack, Table, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import css from "./Statistics.module.css";

export interface PlotProps {
  title: string;
  /** What the plot shows, in a sentence: for those who do not see it, and for those who wonder. */
  says: string;
  head: string[];
  rows: (string | number)[][];
  children: ReactNode;
}

/** A plot with its words and the same numbers as a table. */
export function Plot({ title, says, head, rows, children }: PlotProps) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Stack gap="xs">
        <Title order={2} size="h5">
          {title}
        </Title>
        <Text size="sm">{says}</Text>
        {rows.length > 0 ? (
          <div role="img" aria-label={`${title}. ${says}`}>
            {children}
          </div>
        ) : (
          <Text size="sm" fs="italic">
            Nothing in this time.
          </Text>
        )}
        {rows.length > 0 && (
          <details className={css.fold}>
            <summary>Show as table</summary>
            <div className={css.scroll} tabIndex={0} role="group" aria-label={`${title}, as a table`}>
              <Table stickyHeader>
                <Table.Thead>
                  <Table.Tr>
                    {head.map((name) => (
                      <Table.Th key={name} scope="col">
                        {name}
                      </Table.Th>
                    ))}
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {rows.map((row, place) => (
                    <Table.Tr key={place}>
                      {row.map((cell, column) => (
                        <Table.Td key={column}>{cell}</Table.Td>
                      ))}
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </div>
          </details>
        )}
      </Stack>
    </Paper>
  );
}
