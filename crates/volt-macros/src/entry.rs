//! The function behind the attribute.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, ItemFn, Path, Result, ReturnType, Stmt, Type, parse_quote};

use crate::options::{Flavor, Options};

/// Which attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

impl Kind {
    pub(crate) fn default_flavor(self) -> Flavor {
        match self {
            Self::Main => Flavor::MultiThread,
            Self::Test => Flavor::CurrentThread,
        }
    }
}

/// The plain function, which goes by the runtime of the crate `home`. Beside a mistake there is a function that gives no
/// second message.
pub(crate) fn expand(
    options: TokenStream,
    item: TokenStream,
    kind: Kind,
    home: &str,
) -> TokenStream {
    try_expand(options, item.clone(), kind, home).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        quote! { #error #item }
    })
}

fn try_expand(
    options: TokenStream,
    item: TokenStream,
    kind: Kind,
    home: &str,
) -> Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(item)?;
    let mut error = None;
    if function.sig.asyncness.take().is_none() {
        let message = "the `async` keyword is missing from the function";
        // It goes on as if it was there, for each `.await` in the body.
        error = Some(Error::new_spanned(function.sig.fn_token, message).to_compile_error());
    }
    let twice = (kind == Kind::Test).then(|| refuse_second_test(&mut function)).flatten();
    // Of a test, an attribute below may use them; what is left of them is an error of the `#[test]` here.
    if !function.sig.inputs.is_empty() && kind == Kind::Main && function.sig.ident == "main" {
        let message = "`main` cannot take arguments";
        let arguments = Error::new_spanned(&function.sig.inputs, message).to_compile_error();
        // The body uses them, and what is returned may borrow from them.
        let name = &function.sig.ident;
        return Ok(quote! { #error #twice #arguments fn #name() {} });
    }
    let (options, mistakes) = Options::parse(options, kind, home);
    let mistakes = mistakes.map(Error::into_compile_error);
    let runtime = &options.runtime;
    let builder = builder(&options);
    let block_on = match options.flavor {
        Flavor::Local => quote! { block_on_local },
        _ => quote! { block_on },
    };
    let braces = function.block.brace_token;
    let (declared, future) = future(&mut function, runtime)?;
    // With `return`, for those who ask clippy for it everywhere, and who could not write it here.
    *function.block = syn::parse2(quote! {{
        #declared
        #[allow(clippy::diverging_sub_expression, clippy::needless_return)]
        return #runtime::macro_support::#block_on(#builder, #future);
    }})?;
    // The user's: a function with braces of a macro's is not reported if it is never used.
    function.block.brace_token = braces;
    if kind == Kind::Test {
        // The last one: attributes before it may use the arguments, or make tests of their own from it.
        function.attrs.push(parse_quote! { #[::core::prelude::v1::test] });
    }
    Ok(quote! { #error #twice #mistakes #function })
}

/// Takes away each attribute that would make one more test of the function: it would run twice, or without a runtime.
///
/// Only `test` and the full paths of that: others, such as `test_log::test`, may go by the one that is made here.
fn refuse_second_test(function: &mut ItemFn) -> Option<TokenStream> {
    let is_test = |attribute: &Attribute| {
        let path = attribute.path().segments.iter().map(|segment| segment.ident.to_string());
        let path: Vec<_> = path.collect();
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        matches!(path[..], ["test"] | ["core" | "std", "prelude", _, "test"])
    };
    let (tests, others): (Vec<_>, _) =
        std::mem::take(&mut function.attrs).into_iter().partition(is_test);
    function.attrs = others;
    let message = "this function is a test already, by the attribute above";
    let errors = tests.iter().map(|test| Error::new_spanned(test, message).to_compile_error());
    (!tests.is_empty()).then(|| errors.collect())
}

fn builder(options: &Options) -> TokenStream {
    let runtime = &options.runtime;
    let new = match options.flavor {
        Flavor::MultiThread => quote! { new_multi_thread },
        Flavor::CurrentThread | Flavor::Local => quote! { new_current_thread },
    };
    let workers = options.worker_threads.map(|number| quote! { .worker_threads(#number) });
    let name = options.name.as_ref().map(|name| quote! { .name(#name) });
    let paused = options.start_paused.map(|paused| quote! { .start_paused(#paused) });
    quote! { #runtime::runtime::Builder::#new().enable_all() #workers #name #paused }
}

/// What is declared first, and the future of the body.
///
/// It is that of an `async fn`, whose messages are best, if a function inside can be like the one outside.
fn future(function: &mut ItemFn, runtime: &Path) -> Result<(Option<TokenStream>, TokenStream)> {
    let never = if is_alone(function) { None } else { Some(declare_output(function, runtime)?) };
    let (output, body) = (&function.sig.output, &function.block);
    Ok(match never {
        // A name that nobody writes, as it hides what has it outside.
        None => (Some(quote! { async fn __volt_body() #output #body }), quote! { __volt_body() }),
        Some(never) => (never, quote! { async move #body }),
    })
}

/// True if the function has nothing that one inside would not have as well.
fn is_alone(function: &ItemFn) -> bool {
    let (sig, block) = (&function.sig, &function.block);
    let generics = &sig.generics;
    sig.inputs.is_empty()
        && sig.unsafety.is_none()
        && generics.params.is_empty()
        && generics.where_clause.is_none()
        && !is_never(&sig.output)
        && !has_word(quote! { #block }, "Self")
}

fn is_never(output: &ReturnType) -> bool {
    matches!(output, ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)))
}

/// Declares what the body, an `async` block, returns, by returning it in a branch that is never taken: `?` knows
/// the error's type, and a value of another type is reported where it is, not at the attribute.
///
/// The type is named by a statement in front of the body, since items in there may have the same names. The
/// branch is inside the user's braces, as others around them would make those superfluous, with a warning; and
/// behind the items that they begin with. Nothing if the type cannot be named in a type argument.
fn declare_output(function: &mut ItemFn, runtime: &Path) -> Result<Option<TokenStream>> {
    let (output, place) = match &function.sig.output {
        ReturnType::Default => (quote! { () }, function.sig.ident.span()),
        output if is_never(output) => return Ok(None),
        ReturnType::Type(_, ty) if has_word(quote! { #ty }, "impl") => return Ok(None),
        ReturnType::Type(_, ty) => (quote! { #ty }, ty.span()),
    };
    // Items of the body are nearer than this one, which no span can change: a name that nobody writes.
    let never = Ident::new("__volt_output", Span::mixed_site());
    // Shown there, but nothing that lints would take for the user's own.
    let span = Span::call_site().located_at(place);
    let branch = quote_spanned! { span=>
        let () = if false {
            return #never();
        };
    };
    let stmts = &mut function.block.stmts;
    let items = stmts.iter().take_while(|stmt| matches!(stmt, Stmt::Item(_))).count();
    stmts.insert(items, syn::parse2(branch)?);
    Ok(Some(quote! { let #never = #runtime::macro_support::never::<#output>; }))
}

/// True if this word is somewhere in there, at whatever depth.
fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_word(group.stream(), word),
        token => token.to_string() == word,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(options: TokenStream, item: TokenStream, kind: Kind) -> String {
        expand(options, item, kind, "volt").to_string()
    }

    #[test]
    fn options_reach_the_builder() {
        let options = quote! { flavor = "multi_thread", worker_threads = 3 };
        let text = expanded(options, quote! { async fn main() {} }, Kind::Main);
        assert!(
            text.contains("new_multi_thread () . enable_all () . worker_threads (3usize)"),
            "{text}"
        );
        let options = quote! { start_paused = true, crate = "other::path" };
        let text =
            expanded(options, quote! { async fn t() -> Result<(), E> { Ok(()) } }, Kind::Test);
        assert!(
            text.contains("other :: path :: runtime :: Builder :: new_current_thread"),
            "{text}"
        );
        assert!(text.contains("start_paused (true)"), "{text}");
        assert!(text.contains("async fn __volt_body () -> Result < () , E >"), "{text}");
        let options = quote! { name = "mine", flavor = "local", start_paused = true };
        let text = expanded(options, quote! { async fn t() {} }, Kind::Test);
        assert!(
            text.contains("new_current_thread () . enable_all () . name (\"mine\") . start_paused"),
            "{text}"
        );
        assert!(text.contains("block_on_local ("), "{text}");
    }

    #[test]
    fn the_runtime_is_that_of_the_crate_whose_attribute_it_is() {
        let expanded = |options, home| {
            expand(options, quote! { async fn t() {} }, Kind::Test, home).to_string()
        };
        for home in ["volt", "tokio"] {
            let text = expanded(quote! {}, home);
            assert!(text.contains(&format!("{home} :: runtime :: Builder")), "{text}");
            assert!(text.contains(&format!("{home} :: macro_support")), "{text}");
        }
        let text = expanded(quote! { crate = "volt" }, "tokio");
        assert!(!text.contains("tokio"), "{text}");
    }

    /// A body that returns something else is told so where it does.
    #[test]
    fn the_body_begins_with_the_type_that_it_returns() {
        let item = quote! { async fn t(x: u8) -> u8 { use x; f().await } };
        let text = expanded(quote! {}, item, Kind::Test);
        // Where items of the body cannot be meant; the branch is behind these.
        let parts =
            ["never :: < u8 >", "async move", "use x", "return __volt_output ()", "f () . await"];
        let places = parts.map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
        assert!(places.is_sorted(), "{text}");
        let text = expanded(quote! {}, quote! { async fn t(x: u8) {} }, Kind::Test);
        assert!(text.contains("never :: < () >"), "{text}");
        // These have no name to declare.
        for output in [quote! { impl F }, quote! { (impl F, u8) }, quote! { ! }] {
            let item = quote! { async fn t(x: u8) -> #output { f } };
            let text = expanded(quote! {}, item, Kind::Test);
            assert!(!text.contains("never ::"), "{text}");
        }
    }

    /// What is wrong in it is shown as in any `async fn`.
    #[test]
    fn a_body_that_needs_nothing_of_the_function_is_one_of_its_own() {
        for item in [
            quote! { async fn t() {} },
            quote! { async fn t() -> impl F { f } },
            quote! { #[allow(unused)] pub async fn t() { other(1) } },
        ] {
            let text = expanded(quote! {}, item, Kind::Test);
            assert!(text.contains("async fn __volt_body ()"), "{text}");
            assert!(!text.contains("never ::"), "{text}");
        }
        for item in [
            quote! { async fn t(x: u8) {} },
            quote! { async fn t<T>() {} },
            quote! { async fn t() where u8: Copy {} },
            quote! { async unsafe fn t() {} },
            quote! { async fn t() -> ! { loop {} } },
            quote! { async fn t() { f((1, Self::other())) } },
        ] {
            let text = expanded(quote! {}, item, Kind::Test);
            assert!(text.contains("async move"), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            (quote! {}, quote! { fn main() {} }, "`async` keyword is missing"),
            (quote! { flavour = "x" }, quote! { async fn main() {} }, "unknown option `flavour`"),
            (
                quote! { flavor = "x" },
                quote! { async fn main() {} },
                "`flavor` is \\\"multi_thread\\\"",
            ),
            (
                quote! { flavor = "local", worker_threads = 2 },
                quote! { async fn main() {} },
                "`worker_threads` needs",
            ),
            (quote! { worker_threads = 0 }, quote! { async fn main() {} }, "`worker_threads` is"),
            (quote! { worker_threads }, quote! { async fn main() {} }, "`name = value`"),
            (
                quote! { multi_thread },
                quote! { async fn main() {} },
                "`flavor = \\\"multi_thread\\\"`",
            ),
            (
                quote! { basic_scheduler },
                quote! { async fn main() {} },
                "`flavor = \\\"current_thread\\\"`",
            ),
            (quote! { name = "" }, quote! { async fn main() {} }, "`name` is a text"),
            (quote! { start_paused = true }, quote! { async fn main() {} }, "needs `flavor"),
            (
                quote! { flavor = "current_thread", worker_threads = 2 },
                quote! { async fn main() {} },
                "`worker_threads` needs",
            ),
            (
                quote! { flavor = "multi_thread", flavor = "multi_thread" },
                quote! { async fn main() {} },
                "given twice",
            ),
            (quote! {}, quote! { async fn main(x: u8) {} }, "cannot take arguments"),
        ];
        for (options, item, expected) in cases {
            let text = expanded(options, item, Kind::Main);
            assert!(text.contains("compile_error"), "{text}");
            assert!(text.contains(expected), "{expected}: {text}");
            // That would be one more mistake.
            assert!(!text.contains("async fn main"), "{text}");
        }
    }

    #[test]
    fn a_mistake_makes_no_other_one() {
        // An `.await` is in an `async` block.
        let text = expanded(quote! {}, quote! { fn main() { f().await } }, Kind::Main);
        assert_eq!(text.matches("compile_error").count(), 1, "{text}");
        assert!(text.contains("f () . await }"), "{text}");
        // Nothing borrows from arguments that are not there.
        let item = |name| quote! { async fn #name<'a>(x: &'a str) -> &'a str { x } };
        let text = expanded(quote! {}, item(quote! { main }), Kind::Main);
        assert_eq!(text.matches("compile_error").count(), 1, "{text}");
        assert!(text.ends_with("fn main () { }"), "{text}");
        // Of other functions somebody may pass them; of a test, an attribute below it.
        for kind in [Kind::Main, Kind::Test] {
            let text = expanded(quote! {}, item(quote! { other }), kind);
            assert!(!text.contains("compile_error"), "{text}");
            assert!(text.contains("fn other < 'a > (x : & 'a str)"), "{text}");
        }
        // The crate is found under its other name, before a mistake and after it.
        for options in [
            quote! { crate = "other", flavor = "x", worker_threads = 2 },
            quote! { flavor = "x", worker_threads = 2, crate = "other" },
        ] {
            let text = expanded(options, quote! { async fn t() {} }, Kind::Test);
            assert_eq!(text.matches("compile_error").count(), 1, "{text}");
            assert!(text.contains("other :: macro_support"), "{text}");
        }
    }

    #[test]
    fn a_test_is_no_second_one() {
        for second in [
            quote! { #[test] },
            quote! { #[core::prelude::v1::test] },
            quote! { #[::std::prelude::rust_2024::test] },
            quote! { #[inline] #[test] #[doc = "test"] },
        ] {
            let text = expanded(quote! {}, quote! { #second async fn t() {} }, Kind::Test);
            assert_eq!(text.matches("compile_error").count(), 1, "{text}");
            assert!(text.contains("is a test already"), "{text}");
            assert_eq!(text.matches("test]").count(), 1, "no second message: {text}");
            assert_eq!(
                text.matches("inline").count(),
                second.to_string().matches("inline").count()
            );
        }
        let text = expanded(quote! {}, quote! { #[test] #[test] async fn t() {} }, Kind::Test);
        assert_eq!(text.matches("compile_error").count(), 2, "{text}");
        // Their own names, which are not it.
        let others =
            quote! { #[test_case::test_case(1)] #[cfg(test)] #[test::other] #[test_log::test] };
        let text = expanded(quote! {}, quote! { #others async fn t() {} }, Kind::Test);
        assert!(!text.contains("compile_error"), "{text}");
        assert!(text.contains(&others.to_string()), "{text}");
        // A test may run a `main`.
        let text = expanded(quote! {}, quote! { #[test] async fn t() {} }, Kind::Main);
        assert!(!text.contains("compile_error"), "{text}");
    }

    #[test]
    fn each_mistake_is_named() {
        let options = quote! { flavour = "x", worker_threads = 0 };
        let text = expanded(options, quote! { fn main(x: u8) {} }, Kind::Main);
        assert_eq!(text.matches("compile_error").count(), 2, "{text}");
        let options = quote! { flavour = "x", worker_threads = 0 };
        let text = expanded(options, quote! { fn main() {} }, Kind::Main);
        assert_eq!(text.matches("compile_error").count(), 3, "{text}");
    }
}
