// Tables as CSV. A spreadsheet must not run a text that looks like a formula; numbers stay numbers.
"use strict";

function csvText(rows) {
  const safe = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? ""));
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => row.map((value) => cell(safe(value))).join(",")).join("\n");
}
