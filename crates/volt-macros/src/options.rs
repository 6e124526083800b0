//! The options in the attribute's parentheses.

use proc_macro2::{Ident, Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Meta, MetaNameValue, Path, Result, Token};

use crate::entry::Kind;

/// Which kind of runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    MultiThread,
    CurrentThread,
    Local,
}

/// What the attribute says, checked.
pub(crate) struct Options {
    pub(crate) flavor: Flavor,
    pub(crate) worker_threads: Option<usize>,
    pub(crate) start_paused: Option<bool>,
    pub(crate) name: Option<LitStr>,
    pub(crate) runtime: Path,
}

impl Options {
    /// What holds if nothing is said, for an attribute of the crate `home`.
    fn of(kind: Kind, home: &str) -> Self {
        Self {
            flavor: kind.default_flavor(),
            worker_threads: None,
            start_paused: None,
            name: None,
            // Without `::`: the attribute may have come with a `use other::volt`.
            runtime: Ident::new(home, Span::call_site()).into(),
        }
    }

    /// Reads `flavor = "...", worker_threads = 4, ...`. With mistakes, what is not concerned holds.
    pub(crate) fn parse(tokens: TokenStream, kind: Kind, home: &str) -> (Self, Option<Error>) {
        let mut options = Self::of(kind, home);
        let mistakes = options.read(tokens).err();
        (options, mistakes)
    }

    fn read(&mut self, tokens: TokenStream) -> Result<()> {
        let list = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut given = Vec::new();
        let mut mistakes: Option<Error> = None;
        for meta in list {
            if let Err(error) = self.read_one(meta, &mut given) {
                match &mut mistakes {
                    Some(mistakes) => mistakes.combine(error),
                    None => mistakes = Some(error),
                }
            }
        }
        if let Some(mistakes) = mistakes {
            return Err(mistakes);
        }
        let path = |name: &str| given.iter().find(|path| path.is_ident(name));
        if let (Flavor::CurrentThread | Flavor::Local, Some(path)) =
            (self.flavor, path("worker_threads"))
        {
            let message = "`worker_threads` needs `flavor = \"multi_thread\"`";
            return Err(Error::new_spanned(path, message));
        }
        if let (Flavor::MultiThread, Some(true)) = (self.flavor, self.start_paused) {
            let message =
                "`start_paused` needs `flavor = \"current_thread\"` or `flavor = \"local\"`";
            return Err(Error::new_spanned(path("start_paused"), message));
        }
        Ok(())
    }

    fn read_one(&mut self, meta: Meta, given: &mut Vec<Path>) -> Result<()> {
        let Meta::NameValue(MetaNameValue { path, value, .. }) = &meta else {
            return Err(Error::new_spanned(&meta, without_value(&meta)));
        };
        let name = path.get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "flavor" => self.flavor = parse_flavor(value)?,
            "worker_threads" => self.worker_threads = Some(parse_number(value)?),
            "start_paused" => self.start_paused = Some(parse_bool(value)?),
            "name" => self.name = Some(parse_text(value)?),
            "crate" => self.runtime = parse_path(value)?,
            _ => {
                let known = "`flavor`, `worker_threads`, `start_paused`, `name`, `crate`";
                let message = format!("unknown option `{name}`; there are {known}");
                return Err(Error::new_spanned(path, message));
            }
        }
        if given.iter().any(|other| other.is_ident(&name)) {
            return Err(Error::new_spanned(path, format!("`{name}` is given twice")));
        }
        given.push(path.clone());
        Ok(())
    }
}

/// What is to be said of an option that is not `name = value`: mostly a flavor's name alone, also as Tokio's first
/// versions had it.
fn without_value(meta: &Meta) -> String {
    let word = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
    let expected = match word.as_str() {
        "multi_thread" | "threaded_scheduler" => "flavor = \"multi_thread\"",
        "current_thread" | "basic_scheduler" => "flavor = \"current_thread\"",
        "local" => "flavor = \"local\"",
        _ => "name = value",
    };
    format!("expected `{expected}`")
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
            "local" => return Ok(Flavor::Local),
            _ => {}
        }
    }
    Err(Error::new_spanned(value, "`flavor` is \"multi_thread\", \"current_thread\" or \"local\""))
}

fn parse_number(value: &Expr) -> Result<usize> {
    if let Some(Lit::Int(number)) = literal(value) {
        if let Ok(number @ 1..) = number.base10_parse() {
            return Ok(number);
        }
    }
    Err(Error::new_spanned(value, "`worker_threads` is a positive number"))
}

fn parse_bool(value: &Expr) -> Result<bool> {
    match literal(value) {
        Some(Lit::Bool(bool)) => Ok(bool.value),
        _ => Err(Error::new_spanned(value, "`start_paused` is `true` or `false`")),
    }
}

fn parse_text(value: &Expr) -> Result<LitStr> {
    match literal(value) {
        Some(Lit::Str(text)) if !text.value().trim().is_empty() => Ok(text.clone()),
        _ => Err(Error::new_spanned(value, "`name` is a text in quotes, and not empty")),
    }
}

fn parse_path(value: &Expr) -> Result<Path> {
    match literal(value) {
        Some(Lit::Str(text)) => text.parse_with(Path::parse_mod_style),
        _ => Err(Error::new_spanned(value, "expected a path in quotes, such as \"volt\"")),
    }
}
