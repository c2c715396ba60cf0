// The PCI devices of a node: beside each NUMA node by kind, and all of them in a table.
import { plural } from "../format";
import type { DeviceRow, Health } from "../types";

/** What people call it: its interfaces, else where it is. */
function called(device: DeviceRow): string {
  return device.names.join(" ") || device.address;
}

export function Near({ devices }: { devices: DeviceRow[] }) {
  if (!devices.length) return null;
  const kinds = [...new Set(devices.map((device) => device.kind))];
  const words = kinds.map((kind) => `${kind}: ${devices.filter((device) => device.kind === kind).map(called).join(", ")}`);
  return <p class="what near">{words.join("; ")}</p>;
}

export function Devices({ health }: { health: Health | null }) {
  if (!health?.devices.length) return null;
  const rows = [...health.devices].sort((a, b) => (a.numa_node ?? Infinity) - (b.numa_node ?? Infinity));
  return (
    <section>
      <h3>Devices</h3>
      <p class="note">
        {plural(rows.length, "PCI device")} for network, storage, graphics or computing
        {health.devices_left_out > 0 && `; ${health.devices_left_out} more are not shown`}.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Devices">
        <table>
          <thead><tr><th>NUMA</th><th>kind</th><th>interfaces</th><th>driver</th><th>address</th></tr></thead>
          <tbody>
            {rows.map((device) => (
              <tr key={device.address}>
                <td>{device.numa_node ?? "not known"}</td>
                <td>{device.kind}</td>
                <td>{device.names.join(", ") || "–"}</td>
                <td>{device.driver || "none"}</td>
                <th scope="row">{device.address}</th>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
