import { go } from "../route";

export interface Column<Row> {
  name: string;
  by: (row: Row) => number | string;
  number?: boolean;
}

export interface Order {
  column: number;
  down: boolean;
}

/** By what the address says (`Route.sort`), or as at the start. */
export function sorted<Row>(rows: Row[], columns: Column<Row>[], start: Order, sort: string): [Row[], Order, (column: number) => void] {
  const order = parsed(sort, columns.length) ?? start;
  const by = columns[order.column]?.by;
  const inOrder = by ? [...rows].sort((one, other) => compared(by(one), by(other)) * (order.down ? -1 : 1)) : rows;
  return [inOrder, order, (column) => go({ sort: written({ column, down: order.column === column ? !order.down : Boolean(columns[column]?.number) }) })];
}

function written(order: Order): string {
  return `${order.column}${order.down ? ",down" : ""}`;
}

function parsed(sort: string, columns: number): Order | null {
  const [, column, down] = /^(\d{1,2})(,down)?$/.exec(sort) ?? [];
  return column !== undefined && Number(column) < columns ? { column: Number(column), down: down !== undefined } : null;
}

function compared(one: number | string, other: number | string): number {
  return typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
}

export function Head<Row>({ columns, order, sort }: { columns: Column<Row>[]; order: Order; sort: (column: number) => void }) {
  return (
    <thead>
      <tr>
        {columns.map((column, at) => (
          <th key={column.name} scope="col" class={column.number ? "number" : ""} aria-sort={order.column !== at ? undefined : order.down ? "descending" : "ascending"}>
            <button type="button" class="sort" onClick={() => sort(at)}>
              {column.name}
              <span aria-hidden="true">{order.column === at ? (order.down ? " ↓" : " ↑") : ""}</span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}
