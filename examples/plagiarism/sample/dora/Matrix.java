package dora;

/** Exercise 9: matrices, by rows in one array. */
public class Matrix {
    private final int rows;
    private final int columns;
    private final double[] cells;

    public Matrix(int rows, int columns) {
        this.rows = rows;
        this.columns = columns;
        this.cells = new double[rows * columns];
    }

    public double get(int row, int column) {
        return cells[row * columns + column];
    }

    public void set(int row, int column, double value) {
        cells[row * columns + column] = value;
    }

    public Matrix times(Matrix other) {
        if (columns != other.rows) {
            throw new IllegalArgumentException(columns + " columns, but " + other.rows + " rows");
        }
        Matrix product = new Matrix(rows, other.columns);
        for (int row = 0; row < rows; row++) {
            for (int column = 0; column < other.columns; column++) {
                double sum = 0;
                for (int k = 0; k < columns; k++) {
                    sum += get(row, k) * other.get(k, column);
                }
                product.set(row, column, sum);
            }
        }
        return product;
    }

    public Matrix transposed() {
        Matrix result = new Matrix(columns, rows);
        for (int row = 0; row < rows; row++) {
            for (int column = 0; column < columns; column++) {
                result.set(column, row, get(row, column));
            }
        }
        return result;
    }
}
