import { useState } from "preact/hooks";

export interface Column<Row> {
  name: string;
  by: (row: Row) => number | string;
  number?: boolean;
}

export interface Order {
  column: number;
  down: boolean;
}

export function useSorted<Row>(rows: Row[], columns: Column<Row>[], start: Order): [Row[], Order, (column: number) => void] {
  const [order, setOrder] = useState(start);
  const by = columns[order.column]?.by;
  const sorted = by ? [...rows].sort((one, other) => compared(by(one), by(other)) * (order.down ? -1 : 1)) : rows;
  return [sorted, order, (column) => setOrder((before) => ({ column, down: before.column === column ? !before.down : Boolean(columns[column]?.number) }))];
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
