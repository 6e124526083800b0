//! The options in the attribute's parentheses.

use proc_macro2::Span;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, Meta, MetaNameValue, Path, Result, Token};

use crate::entry::Kind;

/// Which kind of runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    MultiThread,
    CurrentThread,
}

/// What the attribute says, checked.
pub(crate) struct Options {
    pub(crate) flavor: Flavor,
    pub(crate) worker_threads: Option<usize>,
    pub(crate) start_paused: Option<bool>,
    pub(crate) runtime: Path,
}

impl Options {
    /// What holds if nothing is said.
    pub(crate) fn of(kind: Kind) -> Self {
        Self {
            flavor: kind.default_flavor(),
            worker_threads: None,
            start_paused: None,
            runtime: syn::parse_quote_spanned!(Span::call_site()=> ::volt),
        }
    }

    /// Reads `flavor = "...", worker_threads = 4, ...`.
    pub(crate) fn parse(tokens: proc_macro2::TokenStream, kind: Kind) -> Result<Self> {
        let list = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let (mut flavor, mut workers, mut paused, mut runtime) = (None, None, None, None);
        for meta in list {
            let Meta::NameValue(MetaNameValue { path, value, .. }) = &meta else {
                return Err(Error::new_spanned(meta, "expected `name = value`"));
            };
            let name = path.get_ident().map(ToString::to_string).unwrap_or_default();
            let twice = match name.as_str() {
                "flavor" => flavor.replace((parse_flavor(value)?, value.clone())).is_some(),
                "worker_threads" => workers.replace((parse_number(value)?, path.clone())).is_some(),
                "start_paused" => paused.replace((parse_bool(value)?, path.clone())).is_some(),
                "crate" => runtime.replace(parse_path(value)?).is_some(),
                _ => {
                    let known = "`flavor`, `worker_threads`, `start_paused`, `crate`";
                    let message = format!("unknown option `{name}`; there are {known}");
                    return Err(Error::new_spanned(path, message));
                }
            };
            if twice {
                return Err(Error::new_spanned(path, format!("`{name}` is given twice")));
            }
        }
        let default = Self::of(kind);
        let flavor = flavor.map_or(default.flavor, |(flavor, _)| flavor);
        if let (Flavor::CurrentThread, Some((_, path))) = (flavor, &workers) {
            let message = "`worker_threads` needs `flavor = \"multi_thread\"`";
            return Err(Error::new_spanned(path, message));
        }
        if let (Flavor::MultiThread, Some((true, path))) = (flavor, &paused) {
            let message = "`start_paused` needs `flavor = \"current_thread\"`";
            return Err(Error::new_spanned(path, message));
        }
        Ok(Self {
            flavor,
            worker_threads: workers.map(|(number, _)| number),
            start_paused: paused.map(|(paused, _)| paused),
            runtime: runtime.unwrap_or(default.runtime),
        })
    }
}

fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

fn parse_flavor(value: &Expr) -> Result<Flavor> {
    if let Some(Lit::Str(text)) = literal(value) {
        match text.value().as_str() {
            "multi_thread" => return Ok(Flavor::MultiThread),
            "current_thread" => return Ok(Flavor::CurrentThread),
            _ => {}
        }
    }
    Err(Error::new_spanned(value, "expected \"multi_thread\" or \"current_thread\""))
}

fn parse_number(value: &Expr) -> Result<usize> {
    if let Some(Lit::Int(number)) = literal(value) {
        if let Ok(number @ 1..) = number.base10_parse() {
            return Ok(number);
        }
    }
    Err(Error::new_spanned(value, "expected a positive number"))
}

fn parse_bool(value: &Expr) -> Result<bool> {
    match literal(value) {
        Some(Lit::Bool(bool)) => Ok(bool.value),
        _ => Err(Error::new_spanned(value, "expected `true` or `false`")),
    }
}

fn parse_path(value: &Expr) -> Result<Path> {
    match literal(value) {
        Some(Lit::Str(text)) => text.parse_with(Path::parse_mod_style),
        _ => Err(Error::new_spanned(value, "expected a path in quotes, such as \"volt\"")),
    }
}
