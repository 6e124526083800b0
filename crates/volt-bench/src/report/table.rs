//! The table in the terminal.

use std::fmt::Write as _;

use super::{Line, circumstances, failures, fairness, group_title, line, number, warnings};
use crate::record::Record;
use crate::stats::Verdict;

const HEADINGS: [&str; 7] = ["", "Volt", "Tokio", "best peer", "floor", "Volt / best peer", ""];

/// The whole report as text; `colour` for a terminal.
pub(crate) fn render(record: &Record, colour: bool) -> String {
    let mut out = String::new();
    let lines: Vec<Line<'_>> = record.rows.iter().map(line).collect();
    let cells: Vec<[String; 7]> = lines.iter().map(cells).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (group, rows) in record.groups() {
        push(&mut out, &format!("\n{}\n", group_title(group)));
        push_cells(&mut out, &HEADINGS.map(str::to_owned), &widths, None, false);
        for (line, cells) in
            lines.iter().zip(&cells).filter(|(l, _)| rows.iter().any(|r| std::ptr::eq(*r, l.row)))
        {
            push_cells(&mut out, cells, &widths, line.verdict, colour);
        }
    }
    push_fairness(&mut out, record);
    let failed = failures(record);
    if !failed.is_empty() {
        push(&mut out, "\nFailed\n");
        for failure in failed {
            push(&mut out, &format!("  {failure}\n"));
        }
    }
    let (ahead, even, behind) = record.tally();
    push(
        &mut out,
        &format!(
            "\nVolt against the best peer of each row: {ahead} ahead, {even} even, {behind} behind.\n"
        ),
    );
    push(&mut out, &format!("{}\n", circumstances(record)));
    for warning in warnings(record) {
        push(&mut out, &format!("Note: {warning}\n"));
    }
    out
}

fn cells(line: &Line<'_>) -> [String; 7] {
    [
        format!("{}, {}", line.row.title, line.row.unit),
        line.volt.clone(),
        line.tokio.clone(),
        line.best.clone(),
        line.floor.clone(),
        line.ratio.clone(),
        line.verdict.map_or("", Verdict::word).to_owned(),
    ]
}

fn push_cells(
    out: &mut String,
    cells: &[String; 7],
    widths: &[usize; 7],
    verdict: Option<Verdict>,
    colour: bool,
) {
    let mut text = String::from(" ");
    for (i, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let pad = " ".repeat(width - cell.chars().count());
        let coloured = match verdict {
            Some(verdict) if colour && i == 6 => paint(cell, verdict),
            _ => cell.clone(),
        };
        // Text to the left, numbers to the right.
        let padded = if i == 0 || i == 6 { coloured + &pad } else { pad + &coloured };
        text.push(' ');
        text.push_str(&padded);
        text.push(' ');
    }
    push(out, text.trim_end());
    push(out, "\n");
}

fn paint(text: &str, verdict: Verdict) -> String {
    let code = match verdict {
        Verdict::Ahead => 32,
        Verdict::Even => 33,
        Verdict::Behind => 31,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

fn push_fairness(out: &mut String, record: &Record) {
    let rows: Vec<_> =
        record.rows.iter().map(|row| (row, fairness(row))).filter(|(_, f)| !f.is_empty()).collect();
    if rows.is_empty() {
        return;
    }
    push(
        out,
        "\nFairness and tails (a separate pass): wait p50 / p99.9 / longest in us, most-served over least-served task\n",
    );
    for (row, contenders) in rows {
        push(out, &format!("  {}\n", row.title));
        for (name, [p50, p999, longest, share]) in contenders {
            let us = |ns: f64| number(ns / 1000.0);
            push(
                out,
                &format!(
                    "    {name:<28} {:>9} {:>9} {:>9}  {share:>8.2}\n",
                    us(p50),
                    us(p999),
                    us(longest)
                ),
            );
        }
    }
}

fn push(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = out.write_str(text);
}
