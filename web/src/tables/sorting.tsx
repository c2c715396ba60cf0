import { byName } from "../format";
import { go } from "../route";

export interface Column<Row> {
  name: string;
  by: (row: Row) => number | string;
  /** Written to the right; sorted the largest first. */
  number?: boolean;
  /** A bar, which begins at the left; sorted the largest first. */
  bar?: boolean;
}

export interface Order {
  column: number;
  down: boolean;
}

/** By what the address says (`Route.sort`), or as at the start. */
export function sorted<Row>(rows: Row[], columns: Column<Row>[], start: Order, sort: string): [Row[], Order, (column: number) => void] {
  const order = parsed(sort, columns.length) ?? start;
  return [inOrder(rows, columns, order), order, (column) => go({ sort: written(turned(order, column, columns)) })];
}

export function inOrder<Row>(rows: Row[], columns: Column<Row>[], order: Order): Row[] {
  const by = columns[order.column]?.by;
  return by ? [...rows].sort((one, other) => compared(by(one), by(other)) * (order.down ? -1 : 1)) : rows;
}

/** After a click on a column's head. */
export function turned<Row>(order: Order, column: number, columns: Column<Row>[]): Order {
  const largestFirst = Boolean(columns[column]?.number || columns[column]?.bar);
  return { column, down: order.column === column ? !order.down : largestFirst };
}

function written(order: Order): string {
  return `${order.column}${order.down ? ",down" : ""}`;
}

function parsed(sort: string, columns: number): Order | null {
  const [, column, down] = /^(\d{1,2})(,down)?$/.exec(sort) ?? [];
  return column !== undefined && Number(column) < columns ? { column: Number(column), down: down !== undefined } : null;
}

function compared(one: number | string, other: number | string): number {
  return typeof one === "number" && typeof other === "number" ? one - other : byName(String(one), String(other));
}

export function Head<Row>({ columns, order, sort }: { columns: Column<Row>[]; order: Order; sort: (column: number) => void }) {
  return (
    <thead>
      <tr>
        {columns.map((column, at) => (
          <th key={column.name} scope="col" class={column.number ? "number" : ""} aria-sort={order.column !== at ? undefined : order.down ? "descending" : "ascending"}>
            <button type="button" class="sort" onClick={() => sort(at)}>
              {column.name}
              <span class="arrow" aria-hidden="true">{order.column === at ? (order.down ? "↓" : "↑") : ""}</span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}
