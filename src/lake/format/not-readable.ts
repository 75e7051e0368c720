/** The error of a file that cannot be read as what it is said to be. */

/** The message completes a sentence that begins with the name of the file. */
export class NotReadable extends Error {
  override readonly name = 'NotReadable';
}

/** What a library throws about a damaged file is meant for programmers; what the system refuses is left as it is. */
export async function readableAs<T>(what: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const isOfSystem = (error as NodeJS.ErrnoException).syscall !== undefined;
    if (!(error instanceof Error) || error instanceof NotReadable || isOfSystem) throw error;
    throw new NotReadable(`is no ${what} file that can be read (${error.message})`, { cause: error });
  }
}
