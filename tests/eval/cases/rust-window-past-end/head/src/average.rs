//! Moving averages.

/// The average of every `size` values in a row, the last one included.
pub fn moving(values: &[f64], size: usize) -> Vec<f64> {
    let mut out = Vec::new();
    if size == 0 || values.len() < size {
        return out;
    }
    for start in 0..values.len() {
        let window = &values[start..start + size];
        out.push(window.iter().sum::<f64>() / size as f64);
    }
    out
}
