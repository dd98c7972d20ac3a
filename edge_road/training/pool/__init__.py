"""Several runs measured on their own test pictures, and put together by method."""
