// Conversion of amounts between messages and text.
import type { ResourceJson } from "./contract.ts";

// Doubles are numbers or, beyond them, words.
export type Double = number | "NaN" | "Infinity" | "-Infinity";

export const numberOf = (x: Double | undefined): number => (x === undefined ? 0 : Number(x));

// amountOf returns the amount of a dimension; undefined if the resource does not list it.
export function amountOf(resource: ResourceJson | undefined, dimension: number): number | undefined {
  const at = resource?.dimensions?.indexOf(dimension) ?? -1;
  return at < 0 ? undefined : numberOf(resource?.amounts?.[at]);
}

// resourceOf returns the message with these amounts, by dimension.
export function resourceOf(amounts: ReadonlyMap<number, number>): ResourceJson {
  const dimension = [...amounts.keys()].sort((a, b) => a - b);
  return {
    dimensions: dimension,
    amounts: dimension.map((d) => {
      const amount = amounts.get(d) ?? 0;
      return Number.isFinite(amount) ? amount : "Infinity";
    }),
  };
}

// amountsOf is the inverse of resourceOf.
export function amountsOf(resource: ResourceJson | undefined): Map<number, number> {
  const amounts = new Map<number, number>();
  resource?.dimensions?.forEach((d, i) => amounts.set(d, numberOf(resource.amounts?.[i])));
  return amounts;
}

// unitsOf returns how many units of the contract (milli-cores, bytes, whole pods, thousandths of others) one displayed unit has.
export function unitsOf(dimension: string): number {
  switch (dimension) {
    case "memory":
      return isBytes(dimension) ? GI : 1;
    case "pods":
      return 1;
  }
  return isBytes(dimension) ? GI * 1000 : 1000;
}

const GI = 2 ** 30;

// isBytes reports whether a dimension is displayed in Gi.
export const isBytes = (dimension: string): boolean =>
  dimension === "memory" || dimension.endsWith("storage") || dimension.startsWith("hugepages-");

// labelOf returns a short name of a dimension: GPU for nvidia.com/gpu.
export function labelOf(dimension: string): string {
  const last = dimension.slice(dimension.lastIndexOf("/") + 1);
  return last === "gpu" || last === "cpu" ? last.toUpperCase() : last;
}

const plain = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const coarse = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

// Unit is the unit of amounts that are read together.
export interface Unit {
  readonly size: number;
  readonly suffix: string;
}

const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// Where an amount is 10 of the next unit or more, it is shown in that.
const most = 10 * 1024;

// unitFor returns the unit of amounts of a dimension in one column or sentence. As on the command line, that of bytes is the largest of
// theirs in which two decimals of every amount are enough; where there is none, it is that in which the largest amount is below 10 Ki.
export function unitFor(dimension: string, amounts: Iterable<number | undefined>): Unit {
  const one = dimension === "memory" || dimension === "pods" ? 1 : 1000;
  if (!isBytes(dimension)) {
    return { size: one, suffix: "" };
  }
  const given: number[] = [];
  let [least, own, largest] = [binary.length - 1, 0, 0];
  for (const amount of amounts) {
    const bytes = Math.abs(amount ?? 0) / one;
    if (bytes > 0 && Number.isFinite(bytes)) {
      given.push(bytes);
      const unit = alone(bytes, true);
      [least, own, largest] = [Math.min(least, unit), Math.max(own, unit), Math.max(largest, bytes)];
    }
  }
  const exact = (unit: number): boolean => given.every((bytes) => Number.isInteger((bytes / 1024 ** unit) * 100));
  let unit = own;
  while (unit > least && !exact(unit)) {
    unit--;
  }
  if (!exact(unit)) {
    unit = Math.max(unit, alone(largest, false));
  }
  return { size: one * 1024 ** unit, suffix: ` ${binary[unit]}`.trimEnd() };
}

// alone returns the position of the unit in which bytes are shown alone; whole: also of fewer where it divides them.
function alone(bytes: number, whole: boolean): number {
  let unit = 0;
  while (unit < binary.length - 1 && (bytes >= most || (whole && bytes >= 1024 && bytes % 1024 === 0))) {
    bytes /= 1024;
    unit++;
  }
  return unit;
}

// textOf formats an amount without its dimension, in a unit of bytes that it shares with others if there are any.
export function textOf(dimension: string, amount: number | undefined, unit = unitFor(dimension, [amount])): string {
  if (amount === undefined) {
    return "–";
  }
  if (!Number.isFinite(amount)) {
    return amount > 0 ? "no limit" : "–";
  }
  const value = amount / unit.size;
  const few = 0.005;
  if (unit.suffix !== "" && value !== 0 && Math.abs(value) < few) {
    return `< 0.01${unit.suffix}`;
  }
  return numeral(value) + unit.suffix;
}

// alike formats amounts of a dimension that are read together.
export function alike(dimension: string, ...amounts: readonly (number | undefined)[]): string[] {
  const unit = unitFor(dimension, amounts);
  return amounts.map((amount) => textOf(dimension, amount, unit));
}

const numeral = (value: number): string => (Math.abs(value) >= 1000 ? coarse : plain).format(value === 0 ? 0 : value);

// unitOf returns the name of a dimension after an amount: GPUs, or GPU after 1.
export function unitOf(dimension: string, amount: number): string {
  const label = labelOf(dimension);
  const one = textOf(dimension, amount) === "1";
  if (label === "GPU" || label === "CPU") {
    return one ? label : `${label}s`;
  }
  return one && label === "pods" ? "pod" : label;
}

// said formats an amount with its dimension: 8 GPUs, 64 Gi memory.
export const said = (dimension: string, amount: number, unit?: Unit): string => `${textOf(dimension, amount, unit)} ${unitOf(dimension, amount)}`;

// allSaid lists the amounts of a resource that are not zero.
export function allSaid(dimensions: readonly string[], resource: ResourceJson | undefined): string {
  const parts: string[] = [];
  resource?.dimensions?.forEach((d, i) => {
    const amount = numberOf(resource.amounts?.[i]);
    const name = dimensions[d];
    if (amount !== 0 && name !== undefined) {
      parts.push(said(name, amount));
    }
  });
  return parts.join(", ") || "nothing";
}

const suffixes: Record<string, number> = {
  "": 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

// quantityOf parses a Kubernetes quantity into units of the contract; undefined if it is not valid.
export function quantityOf(dimension: string, text: string | number): number | undefined {
  const match = /^([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+\.)([A-Za-z]{0,2})$/.exec(String(text).trim());
  const factor = suffixes[match?.[2] ?? "?"];
  if (match === null || factor === undefined) {
    return undefined;
  }
  const value = Number(match[1]) * factor;
  return dimension === "memory" || dimension === "pods" ? Math.ceil(value) : Math.ceil(value * 1000);
}

// fieldOf formats an amount for an input field, in displayed units.
export function fieldOf(dimension: string, amount: number | undefined): string {
  if (amount === undefined || !Number.isFinite(amount)) {
    return "";
  }
  return String(Math.round((amount / unitsOf(dimension)) * 1000) / 1000);
}

// writtenOf formats an amount exactly as a Kubernetes quantity: 8, 500m, 16Gi.
export function writtenOf(dimension: string, amount: number): string {
  const thousandths = dimension === "memory" || dimension === "pods" ? amount * 1000 : amount;
  if (thousandths % 1000 !== 0) {
    return `${thousandths}m`;
  }
  const whole = thousandths / 1000;
  const suffix = isBytes(dimension) && whole > 0 ? ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki"].find((s) => whole % (suffixes[s] ?? 1) === 0) : undefined;
  return `${whole / (suffixes[suffix ?? ""] ?? 1)}${suffix ?? ""}`;
}
