//! Variables of the foot's own environment in what the settings say of servers.

use std::collections::BTreeMap;

use super::settings::Environment;
use crate::failure::shown;
use crate::servers::ServerText;

/// The beginning of what other programs ask their user for.
const INPUT: &str = "input:";

/// Fills in the variables of a server. One that is disabled is not looked at.
///
/// # Errors
/// Which key names a variable that is not there.
pub(super) fn expanded(text: ServerText, environment: &Environment) -> Result<ServerText, String> {
    if text.disabled {
        return Ok(text);
    }
    let nothing = BTreeMap::new();
    let fill = |key: &str, text: &String, own: &BTreeMap<String, String>| {
        expand(text, environment, own).map_err(|why| format!("`{key}`: {why}"))
    };
    let one = |key: &str, text: &Option<String>| text.as_ref().map(|text| fill(key, text, &nothing)).transpose();
    let map = |key: &str, map: &BTreeMap<String, String>| {
        map.iter().map(|(name, value)| Ok((name.clone(), fill(key, value, &nothing)?))).collect::<Result<_, String>>()
    };
    Ok(ServerText {
        command: one("command", &text.command)?,
        // What the program is given as a variable, it fills in itself.
        args: text.args.iter().map(|arg| fill("args", arg, &text.env)).collect::<Result<_, _>>()?,
        env: map("env", &text.env)?,
        cwd: one("cwd", &text.cwd)?,
        url: one("url", &text.url)?,
        headers: map("headers", &text.headers)?,
        ..text
    })
}

/// Puts variables in the places `${NAME}`, `${env:NAME}` and `${NAME:-otherwise}`. What names no variable, or one of `own`,
/// stays as it is, and `$${` is `${`.
///
/// # Errors
/// Which one is not set.
fn expand(text: &str, environment: &Environment, own: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        let Some((place, behind)) = after.split_once('}') else { break };
        if place.starts_with(INPUT) {
            return Err(format!("`${{{}}}`: inputs are asked by that client; set it in foot.yaml", shown(place)));
        }
        let (name, otherwise) = place.split_once(":-").map_or((place, None), |(name, text)| (name, Some(text)));
        let name = name.strip_prefix("env:").unwrap_or(name);
        if !is_name(name) || own.contains_key(name) {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        let set = environment.get(name).map(std::ffi::OsString::into_string).transpose();
        let set = set.map_err(|_| format!("the variable {} holds no text", shown(name)))?;
        let value = set.or_else(|| otherwise.map(str::to_owned));
        let value = value.ok_or_else(|| format!("the variable {} is not set", shown(name)))?;
        out.push_str(before);
        out.push_str(&value);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether variables are called so.
fn is_name(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_word) && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_place_stays_as_it_is() {
        let environment = Environment::of(&[("A", "1")]);
        let own = BTreeMap::from([("OWN".to_owned(), "x".to_owned())]);
        for (text, filled) in [
            ("$A ${A} ${A", "$A 1 ${A"),
            ("$${A} ${A}", "${A} 1"),
            ("${x%.git} ${A}", "${x%.git} 1"),
            ("Authorization:${OWN} ${A}", "Authorization:${OWN} 1"),
        ] {
            assert_eq!(expand(text, &environment, &own).unwrap(), filled, "{text}");
        }
        assert!(expand("${NONE}", &environment, &own).is_err());
    }
}
