// The one form in which people read durations: 30s, 1h30m, 7d, 11d4h. The command line writes the same.

// duration writes a number of whole seconds without the units that are zero, with days from 48 hours on.
export function duration(seconds: number): string {
  const day = 86_400;
  if (seconds >= 2 * day) {
    return `${Math.floor(seconds / day)}d` + (seconds % day > 0 ? duration(seconds % day) : "");
  }
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [h, m, s] = [`${hours}h`, `${minutes}m`, `${rest}s`];
  if (hours > 0) {
    return rest > 0 ? h + m + s : minutes > 0 ? h + m : h;
  }
  return minutes === 0 ? s : rest > 0 ? m + s : m;
}

// rough writes a duration that need not be exact: in seconds below a minute, in minutes below two days, and in days and hours beyond.
export function rough(seconds: number): string {
  const unit = seconds >= 48 * 3600 ? 3600 : seconds >= 60 ? 60 : 1;
  return duration(unit * Math.round(seconds / unit));
}
