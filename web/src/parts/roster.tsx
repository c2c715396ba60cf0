// A list in a panel: searched, sorted, and some rows at a time, so that hundreds are no wall.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { Head, inOrder, turned, type Column, type Order } from "../tables/sorting";
import { More } from "./more";

const ROWS = 50;
const FEW = 10;

interface Props<Row> {
  label: string;
  rows: Row[];
  columns: Column<Row>[];
  /** What is searched of a row. */
  words: (row: Row) => string;
  row: (row: Row) => ComponentChildren;
}

export function Roster<Row>({ label, rows, columns, words, row }: Props<Row>) {
  const [text, setText] = useState("");
  const [order, setOrder] = useState<Order>({ column: 0, down: false });
  const [pages, setPages] = useState(1);
  const id = useId();
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = wanted.length ? rows.filter((one) => wanted.every((word) => words(one).toLowerCase().includes(word))) : rows;
  const shown = inOrder(found, columns, order).slice(0, pages * ROWS);
  return (
    <>
      {rows.length > FEW && (
        <div class="choice roster">
          <label for={id}>Search</label>
          <input id={id} type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <span class="what" role="status">{text ? `${found.length} of ${rows.length}` : rows.length}</span>
        </div>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label={label}>
        <table>
          <Head columns={columns} order={order} sort={(column) => setOrder(turned(order, column, columns))} />
          <tbody>{shown.map(row)}</tbody>
        </table>
      </div>
      <More shown={shown.length} known={found.length} page={ROWS} onClick={() => setPages(pages + 1)} />
    </>
  );
}
