/* The kernels of the tiled Cholesky factorisation on a device. Matrices are column-major: element (r, c) of x is at
 * x[x_at + r + c * x_ld]. REAL is the type of the elements, REAL4 and REAL8 its vectors.
 *
 * A work item computes 8 rows and 4 columns in registers, with vectors along the rows: elements of a column follow one
 * another in memory. Blocks at the edges are computed element by element. */
#define ROWS 8
#define COLUMNS 4

/* C := C - A * transpose(B), in the block of C from (i, j) on; with `lower`, in the lower triangle only. */
void subtract_edge(__global const REAL *a, uint a_ld, __global const REAL *b, uint b_ld, __global REAL *c, uint c_ld,
                   uint i, uint j, uint m, uint n, uint k, bool lower) {
    for (uint column = j; column < min(j + COLUMNS, n); column++) {
        for (uint row = lower ? max(i, column) : i; row < min(i + ROWS, m); row++) {
            REAL sum = 0;
            for (uint p = 0; p < k; p++) {
                sum += a[row + p * a_ld] * b[column + p * b_ld];
            }
            c[row + column * c_ld] -= sum;
        }
    }
}

/* C := C - A * transpose(B) in a block of 8 x 4, where the pointers are at its first elements. */
void subtract_block(__global const REAL *a, uint a_ld, __global const REAL *b, uint b_ld, __global REAL *c, uint c_ld,
                    uint k) {
    REAL8 u0 = 0, u1 = 0, u2 = 0, u3 = 0;
    for (uint p = 0; p < k; p++) {
        REAL8 x = vload8(0, a);
        REAL4 y = vload4(0, b);
        u0 += x * y.s0;
        u1 += x * y.s1;
        u2 += x * y.s2;
        u3 += x * y.s3;
        a += a_ld;
        b += b_ld;
    }
    vstore8(vload8(0, c) - u0, 0, c);
    vstore8(vload8(0, c + c_ld) - u1, 0, c + c_ld);
    vstore8(vload8(0, c + 2 * c_ld) - u2, 0, c + 2 * c_ld);
    vstore8(vload8(0, c + 3 * c_ld) - u3, 0, c + 3 * c_ld);
}

/* C := C - A * transpose(B): A is m x k, B n x k, C m x n. */
__kernel void gemm(__global const REAL *a, uint a_at, uint a_ld, __global const REAL *b, uint b_at, uint b_ld,
                   __global REAL *c, uint c_at, uint c_ld, uint m, uint n, uint k) {
    uint i = get_global_id(0) * ROWS, j = get_global_id(1) * COLUMNS;
    if (i + ROWS <= m && j + COLUMNS <= n) {
        subtract_block(a + a_at + i, a_ld, b + b_at + j, b_ld, c + c_at + i + j * c_ld, c_ld, k);
    } else {
        subtract_edge(a + a_at, a_ld, b + b_at, b_ld, c + c_at, c_ld, i, j, m, n, k, false);
    }
}

/* The lower triangle of C := C - A * transpose(A): A is n x k. */
__kernel void syrk(__global const REAL *a, uint a_at, uint a_ld, __global REAL *c, uint c_at, uint c_ld, uint n,
                   uint k) {
    uint i = get_global_id(0) * ROWS, j = get_global_id(1) * COLUMNS;
    if (i + ROWS <= j) return;
    if (i + ROWS <= n && i >= j + COLUMNS - 1) {
        subtract_block(a + a_at + i, a_ld, a + a_at + j, a_ld, c + c_at + i + j * c_ld, c_ld, k);
    } else {
        subtract_edge(a + a_at, a_ld, a + a_at, a_ld, c + c_at, c_ld, i, j, n, n, k, true);
    }
}

/* B := B * inverse(transpose(L)): L is n x n, of which the lower triangle is read, B is m x n. A work item has 8 rows. */
__kernel void trsm(__global const REAL *l, uint l_at, uint l_ld, __global REAL *b, uint b_at, uint b_ld, uint m,
                   uint n) {
    uint i = get_global_id(0) * 8;
    l += l_at;
    b += b_at;
    if (i + 8 > m) {
        for (uint row = i; row < m; row++) {
            for (uint j = 0; j < n; j++) {
                REAL sum = b[row + j * b_ld];
                for (uint p = 0; p < j; p++) {
                    sum -= b[row + p * b_ld] * l[j + p * l_ld];
                }
                b[row + j * b_ld] = sum / l[j + j * l_ld];
            }
        }
        return;
    }
    b += i;
    uint j = 0;
    for (; j + 4 <= n; j += 4) {
        __global REAL *x = b + j * b_ld;
        REAL8 x0 = vload8(0, x), x1 = vload8(0, x + b_ld), x2 = vload8(0, x + 2 * b_ld), x3 = vload8(0, x + 3 * b_ld);
        for (uint p = 0; p < j; p++) {
            REAL8 y = vload8(0, b + p * b_ld);
            REAL4 z = vload4(0, l + j + p * l_ld);
            x0 -= y * z.s0;
            x1 -= y * z.s1;
            x2 -= y * z.s2;
            x3 -= y * z.s3;
        }
        __global const REAL *d = l + j + j * l_ld;
        x0 /= d[0];
        x1 = (x1 - x0 * d[1]) / d[1 + l_ld];
        x2 = (x2 - x0 * d[2] - x1 * d[2 + l_ld]) / d[2 + 2 * l_ld];
        x3 = (x3 - x0 * d[3] - x1 * d[3 + l_ld] - x2 * d[3 + 2 * l_ld]) / d[3 + 3 * l_ld];
        vstore8(x0, 0, x);
        vstore8(x1, 0, x + b_ld);
        vstore8(x2, 0, x + 2 * b_ld);
        vstore8(x3, 0, x + 3 * b_ld);
    }
    for (; j < n; j++) {
        REAL8 x = vload8(0, b + j * b_ld);
        for (uint p = 0; p < j; p++) {
            x -= vload8(0, b + p * b_ld) * l[j + p * l_ld];
        }
        vstore8(x / l[j + j * l_ld], 0, b + j * b_ld);
    }
}
