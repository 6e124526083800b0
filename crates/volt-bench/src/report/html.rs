//! A self-contained page: bars per row, and the table. No script, no network.

use super::{circumstances, detail, failures, group_title, interval, line, value_of, warnings};
use crate::record::{Contender, Record, Role, RowResult};
use crate::stats::Verdict;

const STYLE: &str = "
:root { color-scheme: light dark; --back: #ffffff; --text: #1c1e21; --soft: #5f6670; --rule: #d9dce1; --card: #f6f7f9;
  --volt: #1f6feb; --peer: #9aa3af; --floor: #d3a13b; --ahead: #1a7f37; --even: #7a5c00; --behind: #c62828; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14161a; --text: #e6e8eb; --soft: #9aa3af; --rule: #2e333b; --card: #1c1f25;
    --volt: #58a6ff; --peer: #6b7480; --floor: #b88a2b; --ahead: #4ac26b; --even: #d9b23c; --behind: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 72rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 .3rem; font-size: 1.7rem; } h2 { margin: 2.5rem 0 .8rem; font-size: 1.25rem; }
p, .soft { color: var(--soft); } p { margin: .3rem 0; } .warning { color: var(--behind); }
.tally { display: flex; gap: 1.5rem; margin: 1rem 0; } .tally b { font-size: 1.6rem; display: block; line-height: 1.2; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: 1rem 0; } a { color: var(--volt); }
.rows { display: grid; grid-template-columns: repeat(auto-fill, minmax(21rem, 1fr)); gap: 1rem; }
.row { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; padding: .8rem 1rem; }
.row h3 { margin: 0; font-size: 1rem; } .row .soft { font-size: .85rem; }
.bar { display: grid; grid-template-columns: 9.6rem 1fr 5rem; gap: .5rem; align-items: center; font-size: .85rem; margin-top: .25rem; }
.bar span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar i { display: block; height: .8rem; min-width: 2px; border-radius: 2px; background: var(--peer); }
.bar .value { text-align: right; font-variant-numeric: tabular-nums; }
.volt i { background: var(--volt); } .volt { font-weight: 600; } .floor i { background: var(--floor); }
.ahead { color: var(--ahead); } .even { color: var(--even); } .behind { color: var(--behind); }
summary { margin-top: 1.2rem; font-size: 1.25rem; font-weight: bold; cursor: pointer; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: .3rem .5rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; } th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 14rem; } th { color: var(--soft); font-weight: 500; }
";

pub(crate) fn render(record: &Record) -> String {
    let mut out =
        String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    out += "<link rel=\"icon\" href=\"data:,\">\n";
    out +=
        &format!("<title>Volt beside its peers</title>\n<style>{STYLE}</style>\n</head>\n<body>\n");
    out += "<h1>Volt beside its peers</h1>\n";
    out += &format!("<p>{}</p>\n", escape(&circumstances(record)));
    for warning in warnings(record) {
        out += &format!("<p class=\"warning\">{}</p>\n", escape(&warning));
    }
    let (ahead, even, behind) = record.tally();
    out += &format!(
        "<div class=\"tally\"><div class=\"ahead\"><b>{ahead}</b>ahead</div><div class=\"even\"><b>{even}</b>even</div>\
         <div class=\"behind\"><b>{behind}</b>behind</div></div>\n\
         <p>Volt against the best peer of each row. Shorter bars are better; floors do less than the job and show what \
         the machine allows. Brackets hold the 95 % interval of the ratio.</p>\n<nav>"
    );
    for (group, _) in record.groups() {
        out += &format!("<a href=\"#{0}\">{1}</a>", escape(group), escape(group_title(group)));
    }
    out += "<a href=\"#table\">Table</a></nav>\n";
    for (group, rows) in record.groups() {
        out += &format!(
            "<h2 id=\"{}\">{}</h2>\n<div class=\"rows\">\n",
            escape(group),
            escape(group_title(group))
        );
        rows.iter().for_each(|row| push_row(&mut out, row));
        out += "</div>\n";
    }
    push_table(&mut out, record);
    push_details(&mut out, record);
    push_failures(&mut out, record);
    let versions: Vec<String> = record.versions.iter().map(|(n, v)| format!("{n} {v}")).collect();
    out +=
        &format!("<h2>Versions</h2>\n<p>{}</p>\n</body>\n</html>\n", escape(&versions.join(", ")));
    out
}

fn push_row(out: &mut String, row: &RowResult) {
    *out += &format!(
        "<section class=\"row\" id=\"{}\"><h3>{}</h3>",
        escape(&row.id),
        escape(&row.title)
    );
    let against = row.standing().map_or_else(String::new, |s| {
        let word = s.verdict.word();
        format!(
            " &middot; <span class=\"{word}\">{word}</span>: {} of {}",
            escape(&interval(s.ratio)),
            escape(&s.other.name)
        )
    });
    *out += &format!("<div class=\"soft\">{}{against}</div>\n", escape(&row.unit));
    let median = |c: &Contender| c.estimate().map_or(f64::INFINITY, |e| e.median);
    let mut contenders: Vec<&Contender> = row.contenders.iter().collect();
    contenders.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let most = contenders.iter().map(|c| median(c)).filter(|m| m.is_finite()).fold(0.0, f64::max);
    for contender in contenders {
        let class = match contender.role {
            Role::Volt => "bar volt",
            Role::Peer => "bar",
            Role::Floor => "bar floor",
        };
        let width = if most > 0.0 && median(contender).is_finite() {
            median(contender) / most * 100.0
        } else {
            0.0
        };
        let hint = [contender.note.as_str(), contender.failure.as_deref().unwrap_or("")].join(" ");
        *out += &format!(
            "<div class=\"{class}\" title=\"{}\"><span>{}</span><i style=\"width:{width:.1}%\"></i>\
             <span class=\"value\">{}</span></div>\n",
            escape(hint.trim()),
            escape(&contender.name),
            escape(&value_of(contender))
        );
    }
    if !row.note.is_empty() {
        *out += &format!("<div class=\"soft\">{}</div>\n", escape(&row.note));
    }
    *out += "</section>\n";
}

fn push_table(out: &mut String, record: &Record) {
    *out += "<h2 id=\"table\">Table</h2>\n<div class=\"scroll\"><table>\n<tr><th></th><th>unit</th><th>Volt</th><th>Tokio</th>\
             <th>best peer</th><th>floor</th><th>Volt / best peer</th><th></th></tr>\n";
    for line in record.rows.iter().map(line) {
        let word = line.verdict.map_or("", Verdict::word);
        *out += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{word}\">{word}</td></tr>\n",
            escape(&line.row.title),
            escape(&line.row.unit),
            line.volt,
            line.tokio,
            escape(&line.best),
            escape(&line.floor),
            line.ratio
        );
    }
    *out += "</table></div>\n";
}

fn push_details(out: &mut String, record: &Record) {
    for table in detail::tables(record) {
        let head: String = table.headings.iter().map(|h| format!("<th>{h}</th>")).collect();
        *out += &format!(
            "<details><summary>{}</summary>\n<p>{}</p>\n<div class=\"scroll\"><table>\n<tr>{head}</tr>\n",
            table.title, table.about
        );
        for line in table.lines {
            let cells: String = line.iter().map(|c| format!("<td>{}</td>", escape(c))).collect();
            *out += &format!("<tr>{cells}</tr>\n");
        }
        *out += "</table></div>\n</details>\n";
    }
}

fn push_failures(out: &mut String, record: &Record) {
    let failed = failures(record);
    if failed.is_empty() {
        return;
    }
    *out += "<h2>Failed</h2>\n<ul>\n";
    for failure in failed {
        *out += &format!("<li>{}</li>\n", escape(&failure));
    }
    *out += "</ul>\n";
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
