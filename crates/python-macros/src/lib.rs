//! Attributes of the Python bindings' methods.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Types whose values Python gives as integers, and the type with their bounds. A `u8` is one of bytes.
const INTEGERS: [(&str, &str); 7] = [
    ("usize", "usize"),
    ("u32", "u32"),
    ("u64", "u64"),
    ("u128", "u128"),
    ("i32", "i32"),
    ("i64", "i64"),
    ("CountOrName", "usize"),
];

/// Converts the integers among the arguments of a function, or of all functions of a block, by
/// `crate::arguments::integers::argument`, whose error for one out of range has the argument's name and bounds. Stands
/// above `#[pyfunction]` or `#[pymethods]`.
#[proc_macro_attribute]
pub fn integers(_: TokenStream, item: TokenStream) -> TokenStream {
    functions(item)
}

/// Marks the parameters of every function among the tokens, which may be in a block.
fn functions(tokens: TokenStream) -> TokenStream {
    // Nothing but `fn` stands before the first parentheses of a function, which hold its parameters.
    let (mut in_function, mut past_parameters) = (false, false);
    let mut marked = |token| match token {
        TokenTree::Ident(name) if name.to_string() == "fn" => {
            (in_function, past_parameters) = (true, false);
            TokenTree::Ident(name)
        }
        TokenTree::Group(group) if in_function && group.delimiter() == Delimiter::Parenthesis => {
            (in_function, past_parameters) = (false, true);
            regrouped(&group, list(group.stream()).into_iter().flat_map(parameter).collect())
        }
        // The body of a function.
        TokenTree::Group(group) if past_parameters && group.delimiter() == Delimiter::Brace => {
            past_parameters = false;
            TokenTree::Group(group)
        }
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            regrouped(&group, functions(group.stream()))
        }
        // In a macro, a fragment such as a type is a group without delimiters.
        other => other,
    };
    tokens.into_iter().map(&mut marked).collect()
}

fn regrouped(group: &Group, tokens: TokenStream) -> TokenTree {
    let mut out = Group::new(group.delimiter(), tokens);
    out.set_span(group.span());
    TokenTree::Group(out)
}

/// The parameters of a list, each with its comma.
fn list(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let (mut out, mut depth, mut arrow) = (vec![Vec::new()], 0_usize, false);
    for token in tokens {
        let punctuation = match &token {
            TokenTree::Punct(punctuation) => Some(punctuation.as_char()),
            _ => None,
        };
        match punctuation {
            Some('<') => depth += 1,
            Some('>') if !arrow => depth = depth.saturating_sub(1),
            _ => {}
        }
        arrow = punctuation == Some('-');
        if let Some(parameter) = out.last_mut() {
            parameter.push(token);
        }
        if depth == 0 && punctuation == Some(',') {
            out.push(Vec::new());
        }
    }
    out
}

/// A parameter with the attribute that names its conversion, if its type has integers.
fn parameter(tokens: Vec<TokenTree>) -> TokenStream {
    let colon = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
    let mut out = TokenStream::new();
    if let Some(place) = tokens.iter().position(colon)
        && let Some(TokenTree::Ident(name)) = place.checked_sub(1).map(|before| &tokens[before])
        && let Some(bounded) = tokens[place..].iter().find_map(integer)
    {
        let (name, helper) = (packed(&name.to_string()), "crate::arguments::integers::argument");
        let attribute = format!("#[pyo3(from_py_with = {helper}::<{}, {}, {bounded}, _>)]", name[0], name[1]);
        out.extend(attribute.parse::<TokenStream>().into_iter().flatten());
    }
    out.extend(tokens);
    out
}

/// The first integer in a type.
fn integer(token: &TokenTree) -> Option<&'static str> {
    match token {
        TokenTree::Ident(name) => {
            let name = name.to_string();
            INTEGERS.iter().find(|(known, _)| *known == name).map(|(_, bounded)| *bounded)
        }
        TokenTree::Group(group) => group.stream().into_iter().find_map(|token| integer(&token)),
        _ => None,
    }
}

/// A name of at most 32 bytes as two numbers: text cannot be an argument of a type.
fn packed(name: &str) -> [u128; 2] {
    let mut bytes = [0; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    let (first, second) = bytes.split_at(16);
    [first, second].map(|half| half.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte)))
}
