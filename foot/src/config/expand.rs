//! Variables of the foot's own environment in what the settings say of servers.

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
    let fill = |key: &str, text: &String| expand(text, environment).map_err(|why| format!("`{key}`: {why}"));
    let one = |key: &str, text: &Option<String>| text.as_ref().map(|text| fill(key, text)).transpose();
    let map = |key: &str, map: &std::collections::BTreeMap<String, String>| {
        map.iter().map(|(name, value)| Ok((name.clone(), fill(key, value)?))).collect::<Result<_, String>>()
    };
    Ok(ServerText {
        command: one("command", &text.command)?,
        args: text.args.iter().map(|arg| fill("args", arg)).collect::<Result<_, _>>()?,
        env: map("env", &text.env)?,
        cwd: one("cwd", &text.cwd)?,
        url: one("url", &text.url)?,
        headers: map("headers", &text.headers)?,
        ..text
    })
}

/// Puts variables in the places `${NAME}`, `${env:NAME}` and `${NAME:-otherwise}`.
///
/// # Errors
/// Which one is not set.
fn expand(text: &str, environment: &Environment) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((place, behind)) = after.split_once('}') else { break };
        if place.starts_with(INPUT) {
            return Err(format!("`${{{}}}`: inputs are asked by that client; set it in foot.yaml", shown(place)));
        }
        let (name, otherwise) = place.split_once(":-").map_or((place, None), |(name, text)| (name, Some(text)));
        let name = name.strip_prefix("env:").unwrap_or(name);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_does_not_end_is_none() {
        let environment = Environment::of(&[("A", "1")]);
        assert_eq!(expand("$A ${A} ${A", &environment).unwrap(), "$A 1 ${A");
    }
}
