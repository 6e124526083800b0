//! Licences and sources of the dependencies, checked offline from `cargo metadata`.
//!
//! Advisories: their database cannot be had offline, so `deny.toml` lists the versions that we know
//! to be bad, and a yanked version is refused by cargo itself when the lock file is made.

use serde_json::Value;

use crate::command::root;
use crate::ecosystem;

/// Checks every package of both lock files against `deny.toml`.
///
/// # Errors
/// Lists each package with a licence that is not allowed, from another source than the public
/// registry, or of a banned version.
pub(crate) fn run() -> Result<(), String> {
    let rules = std::fs::read_to_string(root().join("deny.toml"))
        .map_err(|error| format!("deny.toml: {error}"))?;
    let rules = Rules { licences: list(&rules, "allow"), banned: list(&rules, "deny") };
    for lock_file in [&[][..], &ecosystem::MANIFEST] {
        let metadata = crate::variants::metadata(lock_file)?;
        let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
        let problems: Vec<String> = packages.iter().filter_map(|it| rules.problem(it)).collect();
        if !problems.is_empty() {
            return Err(problems.join("\n"));
        }
        println!("{} packages: licences, sources and versions are allowed", packages.len());
    }
    Ok(())
}

struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
}

impl Rules {
    fn problem(&self, package: &Value) -> Option<String> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{}@{}", text("name"), text("version"));
        if self.banned.contains(&name) {
            return Some(format!("{name}: this version is denied"));
        }
        // `null` for members of the workspace.
        if !package["source"].is_null() && !text("source").starts_with("registry+") {
            return Some(format!("{name}: from {}, not from the registry", text("source")));
        }
        let licence = text("license");
        let allowed = self.allows(licence);
        (!allowed).then(|| format!("{name}: licence `{licence}` is not allowed"))
    }

    /// Evaluates an SPDX expression of names, AND, OR, `/` and parentheses.
    fn allows(&self, expression: &str) -> bool {
        let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let tokens: Vec<&str> = spaced.split_whitespace().collect();
        let mut rest = tokens.as_slice();
        !tokens.is_empty() && self.any_of(&mut rest) && rest.is_empty()
    }

    fn any_of(&self, rest: &mut &[&str]) -> bool {
        let mut allowed = self.all_of(rest);
        while rest.first() == Some(&"OR") {
            *rest = &rest[1..];
            allowed |= self.all_of(rest);
        }
        allowed
    }

    fn all_of(&self, rest: &mut &[&str]) -> bool {
        let mut allowed = self.single(rest);
        while rest.first() == Some(&"AND") {
            *rest = &rest[1..];
            allowed &= self.single(rest);
        }
        allowed
    }

    fn single(&self, rest: &mut &[&str]) -> bool {
        let Some((&token, tail)) = rest.split_first() else { return false };
        *rest = tail;
        if token == "(" {
            let allowed = self.any_of(rest);
            let closed = rest.first() == Some(&")");
            *rest = rest.get(1..).unwrap_or_default();
            return allowed && closed;
        }
        let allowed = self.licences.iter().any(|it| it == token);
        if rest.first() == Some(&"WITH") {
            // An exception only ever permits more.
            *rest = rest.get(2..).unwrap_or_default();
        }
        allowed
    }
}

/// The strings of `key = [ ... ]` in a TOML text (one string a line, or all on one).
fn list(text: &str, key: &str) -> Vec<String> {
    let start = text.find(&format!("\n{key} = ["));
    let Some(start) = start else { return Vec::new() };
    let body = text[start..].split_once('[').map_or("", |(_, body)| body);
    let body = body.split_once(']').map_or("", |(body, _)| body);
    body.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            licences: vec!["MIT".into(), "Apache-2.0".into()],
            banned: vec!["bad@1.0.0".into()],
        }
    }

    #[test]
    fn expressions_are_evaluated() {
        for allowed in ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR (MIT AND Apache-2.0)"] {
            assert!(rules().allows(allowed), "{allowed}");
        }
        for refused in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "GPL-3.0 OR (MIT AND GPL-3.0)"] {
            assert!(!rules().allows(refused), "{refused}");
        }
        assert!(rules().allows("Apache-2.0 WITH LLVM-exception AND MIT"));
    }

    #[test]
    fn planted_violations_are_named() {
        let package = |name: &str, licence: &str, source: &str| serde_json::json!({"name": name, "version": "1.0.0", "license": licence, "source": source});
        let problem = |package: &Value| rules().problem(package).unwrap_or_default();
        assert!(problem(&package("a", "GPL-3.0", "registry+x")).contains("licence `GPL-3.0`"));
        assert!(problem(&package("a", "MIT", "git+x")).contains("not from the registry"));
        assert!(problem(&package("bad", "MIT", "registry+x")).contains("denied"));
        assert_eq!(problem(&package("good", "MIT", "registry+x")), "");
    }

    #[test]
    fn lists_are_read_from_toml() {
        let text = "[licenses]\nallow = [\n  \"MIT\",\n  \"Zlib\",\n]\n[bans]\ndeny = []\n";
        assert_eq!(list(text, "allow"), ["MIT", "Zlib"]);
        assert!(list(text, "deny").is_empty());
    }
}
