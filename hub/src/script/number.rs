//! How numbers look in JSON on their way in and out.

/// Numbers below this have their exact digits written, not the shortest that read back as the same double.
const EXACT_BELOW: f64 = 1e21;

/// Whether a JSON number literal can become a Number: it is no integer literal, or its digits come back out unchanged.
pub(super) fn survives_as_number(literal: &str) -> bool {
    /// Integers of so many digits are all below 2^53.
    const SURE_DIGITS: usize = 15;
    if literal.len() <= SURE_DIGITS || literal.contains(['.', 'e', 'E']) {
        return true;
    }
    literal.parse::<f64>().is_ok_and(|number| {
        let mut written = String::new();
        write_number(&mut written, number);
        written == literal
    })
}

/// Writes a Number as JSON: integers below 10^21 with all their digits, others in the shortest form that reads back as
/// the same; `NaN` and the infinities as `null`, `-0` as `0`, as `JSON.stringify` does.
pub(super) fn write_number(out: &mut String, number: f64) {
    use std::fmt::Write as _;
    // Writing to a string cannot fail.
    if !number.is_finite() {
        out.push_str("null");
    } else if number.fract() == 0.0 && number.abs() < EXACT_BELOW {
        let _ = write!(out, "{}", number as i128);
    } else {
        match serde_json::to_string(&number) {
            Ok(text) => out.push_str(&text),
            Err(_) => out.push_str("null"),
        }
    }
}
