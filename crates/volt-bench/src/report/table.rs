//! The table in the terminal.

use std::fmt::Write as _;

use super::{Line, circumstances, detail, failures, group_title, line, warnings};
use crate::record::Record;
use crate::stats::Verdict;

const HEADINGS: [&str; 7] = ["", "Volt", "Tokio", "best peer", "floor", "Volt / best peer", ""];

/// The whole report as text; `colour` for a terminal, `stats` with what Volt's scheduler did.
pub(crate) fn render(record: &Record, colour: bool, stats: bool) -> String {
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
    push_details(&mut out, record, stats);
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

fn push_details(out: &mut String, record: &Record, stats: bool) {
    for table in detail::tables(record) {
        if table.title == detail::SCHEDULER && !stats {
            continue;
        }
        push(out, &format!("\n{}\n", table.title));
        let mut widths: Vec<usize> = table.headings.iter().map(|h| h.len()).collect();
        for line in &table.lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let headings: Vec<String> = table.headings.iter().map(ToString::to_string).collect();
        for line in std::iter::once(&headings).chain(&table.lines) {
            let mut text = String::new();
            for (i, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - cell.chars().count());
                text += "  ";
                text += &if i < 2 { cell.clone() + &pad } else { pad + cell };
            }
            push(out, text.trim_end());
            push(out, "\n");
        }
    }
}

fn push(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = out.write_str(text);
}
