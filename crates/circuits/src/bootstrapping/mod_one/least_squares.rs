//! Linear least squares by Householder's method.

/// The `x` that minimises `|A x - b|^2 + |ridge x|^2`, for `A` given by rows of equal length, at least as many as
/// unknowns.
///
/// The ridge fixes directions that the rows leave open. It costs an error of about `ridge |x|`; without it such
/// directions grow as large as rounding allows.
pub(crate) fn solve(rows: &[Vec<f64>], b: &[f64], ridge: f64) -> Vec<f64> {
    let n = rows.first().map_or(0, Vec::len);
    let m = rows.len() + n;
    // Columns of (A; ridge), then (b; 0).
    let mut columns: Vec<Vec<f64>> = (0..n)
        .map(|j| {
            let unit = (0..n).map(|i| if i == j { ridge } else { 0.0 });
            rows.iter().map(|row| row[j]).chain(unit).collect()
        })
        .collect();
    columns.push(b.iter().copied().chain(std::iter::repeat_n(0.0, n)).collect());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    for k in 0..n {
        let (done, rest) = columns.split_at_mut(k + 1);
        let column = &mut done[k][k..m];
        let norm = dot(column, column).sqrt();
        if norm == 0.0 {
            continue;
        }
        // v = column + sign(first) norm e_1; H = 1 - 2 v v^T / |v|^2 takes the column to -sign(first) norm e_1.
        let first = column[0];
        let diagonal = -norm.copysign(first);
        column[0] -= diagonal;
        let scale = 2.0 / dot(column, column);
        for other in rest {
            let factor = scale * dot(column, &other[k..m]);
            other[k..m].iter_mut().zip(&*column).for_each(|(x, v)| *x -= factor * v);
        }
        column[0] = diagonal;
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| columns[j][k] * x[j]).sum();
        let diagonal = columns[k][k];
        x[k] = if diagonal == 0.0 { 0.0 } else { (columns[n][k] - known) / diagonal };
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_through_points() {
        let rows: Vec<Vec<f64>> = (0..5).map(|i| vec![1.0, f64::from(i)]).collect();
        // Exact data, and data with residuals orthogonal to both columns.
        for (b, expected) in
            [([1.0, 3.0, 5.0, 7.0, 9.0], [1.0, 2.0]), ([1.0, -1.0, 0.0, 1.0, -1.0], [0.4, -0.2])]
        {
            let x = solve(&rows, &b, 0.0);
            assert!(x.iter().zip(expected).all(|(x, e)| (x - e).abs() < 1e-14), "{x:?}");
        }
    }

    #[test]
    fn a_ridge_decides_what_rows_leave_open() {
        // Only the sum of both unknowns is given: the shortest solution is half of it each.
        let x = solve(&[vec![1.0, 1.0], vec![2.0, 2.0]], &[1.0, 2.0], 1e-6);
        assert!(x.iter().all(|x| (x - 0.5).abs() < 1e-9), "{x:?}");
        assert_eq!(solve(&[vec![0.0], vec![0.0]], &[1.0, 1.0], 0.0), [0.0]);
        assert!(solve(&[], &[], 1.0).is_empty());
    }
}
